package story

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/sim/sched"
)

// Sizes of the sequence diagram, pixels of a 12 px monospaced font.
const (
	charWidth  = 7.3
	rowHeight  = 15
	headHeight = 34
	leftMargin = 46 // for the step numbers
	gutter     = 12 // between a lifeline and its texts
	arrowRoom  = 9
	maxText    = 34 // runes a line
)

// states describe how to draw a lifeline for each byte of sched.Event.Lines.
var states = []struct {
	mark             byte
	color, dash, say string
	width            float64
}{
	{'|', "#3b6fb6", "", "can run", 3},
	{'.', "#b8860b", "2 3", "waits", 2},
	{'!', "#e67e00", "5 2", "suspension requested", 4},
	{'#', "#cc0000", "", "suspended", 6},
}

// sequence is a diagram being drawn.
type sequence struct {
	strings.Builder
	r *sched.Result
	x []float64 // of the lifelines
	y float64
}

// Sequence draws a run as a sequence diagram (SVG). Time runs down, and each thread has a column. The
// style of a thread's line shows whether the thread can run.
func Sequence(r *sched.Result) string {
	s := &sequence{r: r, y: headHeight}
	width := s.columns()
	last := 0
	for i := range r.Trace {
		e := &r.Trace[i]
		s.event(e, e.Step != last)
		last = e.Step
	}
	s.end()
	width = max(width, s.legend())
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="12">`+"\n", width, s.y, width, s.y) +
		`<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#444"/></marker></defs>` + "\n" +
		`<rect width="100%" height="100%" fill="#fff"/>` + "\n"
	return head + s.String() + "</svg>\n"
}

// columns places the lifelines, writes their names and returns the width.
func (s *sequence) columns() float64 {
	chars := make([]int, len(s.r.Actors))
	for i, name := range s.r.Actors {
		chars[i] = utf8.RuneCountInString(name) + 1
	}
	for _, e := range s.r.Trace {
		for _, l := range wrap(e.Text, maxText) {
			chars[e.Actor] = max(chars[e.Actor], utf8.RuneCountInString(l))
		}
	}
	at := float64(leftMargin)
	for i, name := range s.r.Actors {
		s.x = append(s.x, at)
		s.text(at-3, headHeight-14, `font-weight="bold"`, name)
		at += float64(chars[i])*charWidth + 2*gutter
	}
	return at
}

// event draws one event and the lifelines beside it.
func (s *sequence) event(e *sched.Event, first bool) {
	lines := wrap(e.Text, maxText)
	height := float64(len(lines)) * rowHeight
	top := s.y
	target, arrow := s.target(e)
	if arrow && target > e.Actor {
		height += arrowRoom // the text stands below the arrow
	}
	s.lifelines(marks(e), top, height)
	if first && e.Step > 0 {
		s.text(8, top+rowHeight-3, `fill="#888"`, fmt.Sprint(e.Step))
	}
	x := s.x[e.Actor]
	if step(e.Kind) {
		fmt.Fprintf(s, `<circle cx="%.1f" cy="%.1f" r="4" fill="#222"/>`+"\n", x, top+rowHeight/2)
	}
	if arrow {
		end := s.x[target]
		fmt.Fprintf(s, `<path d="M%.1f %.1fH%.1f" stroke="#444" stroke-width="1.2" marker-end="url(#a)"/>`+
			"\n", x, top+rowHeight/2, end)
		if end > x {
			top += arrowRoom
		}
	}
	for i, l := range lines {
		s.text(x+gutter, top+float64(i+1)*rowHeight-3, style(e), l)
	}
	s.y += height
}

// step reports whether events of a kind are steps of their actor.
func step(k sched.Kind) bool {
	switch k {
	case sched.KindChoose, sched.KindNote, sched.KindBlocked, sched.KindEnd, sched.KindFault:
		return false
	}
	return true
}

func style(e *sched.Event) string {
	switch e.Kind {
	case sched.KindFault:
		return `fill="#c00" font-weight="bold"`
	case sched.KindBlocked:
		return `fill="#8a6500"`
	case sched.KindNote:
		return `fill="#0a6b2d"`
	}
	return `fill="#222"`
}

// target returns the column of the thread that an event affects. It returns false if it affects no thread.
func (s *sequence) target(e *sched.Event) (int, bool) {
	verb := ""
	switch e.Kind {
	case sched.KindSuspend:
		verb = "suspend "
	case sched.KindResume:
		verb = "resume "
	case sched.KindSignal:
		verb = "signal "
	default:
		return 0, false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(e.Text, verb), ":")
	for i, n := range s.r.Actors {
		if n == name && i != e.Actor {
			return i, true
		}
	}
	return 0, false
}

// marks returns the states of the lifelines. In its own event, an actor is shown as running, even if it
// must wait from then on.
func marks(e *sched.Event) string {
	if e.Kind == sched.KindBlocked && e.Actor < len(e.Lines) {
		return e.Lines[:e.Actor] + "." + e.Lines[e.Actor+1:]
	}
	return e.Lines
}

func (s *sequence) lifelines(marks string, top, height float64) {
	for i := range min(len(marks), len(s.x)) {
		for _, st := range states {
			if st.mark == marks[i] {
				s.line(s.x[i], top, s.x[i], top+height, st.color, st.dash, st.width)
			}
		}
	}
}

func (s *sequence) line(x1, y1, x2, y2 float64, color, dash string, width float64) {
	if dash != "" {
		dash = ` stroke-dasharray="` + dash + `"`
	}
	fmt.Fprintf(s, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-width="%.0f"%s/>`+"\n", x1,
		y1, x2, y2, color, width, dash)
}

// end writes how the run ended.
func (s *sequence) end() {
	s.y += rowHeight + 6
	color := "#0a6b2d"
	if s.r.Outcome != sched.Done {
		color = "#c00"
	}
	s.text(8, s.y, `font-weight="bold" fill="`+color+`"`,
		fmt.Sprintf("%s after %d steps", s.r.Outcome, s.r.Steps))
}

// legend explains the lifelines and returns the width it needs.
func (s *sequence) legend() float64 {
	s.y += rowHeight + 4
	x := 8.0
	for _, st := range states {
		s.line(x, s.y-4, x+22, s.y-4, st.color, st.dash, st.width)
		s.text(x+28, s.y, `fill="#444"`, st.say)
		x += 28 + float64(len(st.say))*charWidth + 16
	}
	s.y += 12
	return x
}

func (s *sequence) text(x, y float64, attr, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" %s xml:space="preserve">%s</text>`+"\n",
		x, y, attr, sched.Escape(text))
}

// wrap breaks text at spaces into lines of about width runes. Lines after the first are indented. A longer
// word is a line of its own.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), "  "+word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
