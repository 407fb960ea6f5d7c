package sched

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Columns of a timeline are as wide as their longest text, within these bounds.
const (
	minColumn = 6
	maxColumn = 34
)

// legend explains the marks between a timeline's texts.
const legend = "       | can run   . waits   ! suspension requested   # suspended\n"

// Timeline draws the trace as a sequence diagram: one column an actor, time
// runs down, the number is the step's.
func (r *Result) Timeline() string {
	widths := r.columns()
	var b strings.Builder
	row(&b, "step", r.Actors, widths)
	last := 0
	for _, e := range r.Trace {
		step := ""
		if e.Step != last {
			step, last = fmt.Sprint(e.Step), e.Step
		}
		for _, line := range wrap(e.Text, maxColumn) {
			cells := make([]string, len(r.Actors))
			for i := range cells {
				cells[i] = string(rune(lineNone))
				if i < len(e.Lines) {
					cells[i] = e.Lines[i : i+1]
				}
			}
			cells[e.Actor] = line
			row(&b, step, cells, widths)
			step = ""
		}
	}
	b.WriteString(legend)
	fmt.Fprintf(&b, "%s after %d steps\n", r.Outcome, r.Steps)
	if r.Fault != "" {
		fmt.Fprintf(&b, "%s\n", r.Fault)
	}
	if r.Graph != nil {
		b.WriteString(r.Graph.Text())
	}
	return b.String()
}

func (r *Result) columns() []int {
	widths := make([]int, len(r.Actors))
	for i, name := range r.Actors {
		widths[i] = max(minColumn, utf8.RuneCountInString(name))
	}
	for _, e := range r.Trace {
		for _, line := range wrap(e.Text, maxColumn) {
			widths[e.Actor] = max(widths[e.Actor], utf8.RuneCountInString(line))
		}
	}
	return widths
}

func row(b *strings.Builder, step string, cells []string, widths []int) {
	line := fmt.Sprintf("%5s", step)
	for i, c := range cells {
		line += "  " + c + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(c)))
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// wrap breaks text at spaces into lines of at most width runes; a longer word
// is cut. Lines after the first are indented.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		for {
			sep := ""
			if strings.TrimSpace(line) != "" {
				sep = " "
			}
			room := width - utf8.RuneCountInString(line+sep)
			if utf8.RuneCountInString(word) <= room {
				line += sep + word
				break
			}
			if sep == "" { // alone on its line and still too long
				r := []rune(word)
				line, word = line+string(r[:room]), string(r[room:])
			}
			lines, line = append(lines, line), "  "
		}
	}
	return append(lines, line)
}
