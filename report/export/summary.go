package export

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// TextOptions controls the text formats.
type TextOptions struct {
	Color      bool    // ANSI colors; set it only for a terminal
	Width      int     // columns, at least 40; 0: 100 for trees, and no limit for the lines of the summary
	MaxLines   int     // lines of the tree without its heading, 0 = 110, at least 5
	MinPercent float64 // branches below this share of the tree's total are summed up, 0 = 1
}

func (o TextOptions) filled() TextOptions {
	if o.Width <= 0 {
		o.Width = 100
	}
	if o.MaxLines <= 0 {
		o.MaxLines = 110
	}
	if !(o.MinPercent > 0) {
		o.MinPercent = 1
	}
	o.Width, o.MaxLines, o.MinPercent = max(o.Width, 40), max(o.MaxLines, 5), min(o.MinPercent, 100)
	return o
}

// ANSI SGR parameters (ECMA-48, 8.3.117).
const (
	sgrBold = "1"
	sgrDim  = "2"
	sgrGood = "32"
	sgrBad  = "31"
)

var classSGR = [numClasses]string{ClassManaged: "36", ClassNative: "33", ClassRuntime: "35", ClassStub: "2",
	ClassGap: "1;31", ClassType: "32", ClassResumer: "2", ClassAsync: "3;36"}

// paint colors s if colors are enabled.
func (o TextOptions) paint(sgr, s string) string {
	if !o.Color || sgr == "" || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// topRows is the length of the table of functions in the format "text".
const topRows = 30

// WriteText writes the summary, the functions with most time, and the tree, without colors: the
// format "text". If the tree is of CPU time, a tree of the wall time of threads that wait follows.
func WriteText(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	opt := TextOptions{Width: 160, MaxLines: 200, MinPercent: 0.5}
	if err := WriteSummary(w, p, opt); err != nil {
		return err
	}
	sampled := p.sampled()
	by := sampled.defaultMetric()
	if p.Stats.Empty != "" {
		_, err := io.WriteString(w, "\n"+clean(p.Stats.Empty)+"\n")
		return err
	}
	var top strings.Builder
	if err := WriteTop(&top, p, topRows, opt); err != nil {
		return err
	}
	text := "\n"
	if top.String() != noSamples {
		text += top.String() + "\n"
	}
	text += treeOf(sampled, by, metrics[by].label, opt)
	if waits := sampled.waiting(); waits != nil {
		text += "\n" + treeOf(waits, valueWall, "Wall time of threads that wait", opt)
	}
	_, err := io.WriteString(w, text)
	return err
}

// summary collects lines "label value".
type summary struct {
	opt  TextOptions
	room int // runes of a value in one row
	text strings.Builder
}

const labelWidth = 13

func (s *summary) line(label, sgr, value string) {
	for _, row := range wrap(value, s.room) {
		s.text.WriteString(s.opt.paint(sgrBold, fmt.Sprintf("%-*s", labelWidth, label)) +
			s.opt.paint(sgr, row) + "\n")
		label = ""
	}
}

// wrap breaks s at single spaces into rows of at most n runes. A longer word, such as a path,
// is never cut. At least one row is returned.
func wrap(s string, n int) (rows []string) {
	for utf8.RuneCountInString(s) > n {
		at := lastBreak(s, n)
		if at < 0 {
			break
		}
		rows = append(rows, s[:at])
		s = s[at+1:]
	}
	return append(rows, s)
}

// lastBreak returns the place where a line of n runes can end: the last single space in the first n+1 runes
// of s. If there is no such space, it returns the next one, or -1. Runs of spaces align columns, so they are
// not broken. A number stays with its unit.
func lastBreak(s string, n int) int {
	best, runes := -1, 0
	for i, r := range s {
		if r == ' ' && i > 0 && i+1 < len(s) && s[i-1] != ' ' && s[i+1] != ' ' &&
			(s[i-1] < '0' || s[i-1] > '9') {
			if runes > n && best >= 0 {
				return best
			}
			best = i
			if runes > n {
				return best
			}
		}
		runes++
	}
	return best
}

// WriteSummary writes the figures of a recording: how its command ended, samples, findings, the share of
// complete stacks, incomplete stacks by reason, CPU time, events, how long the runtime was suspended, and
// notes.
func WriteSummary(w io.Writer, p *Profile, opt TextOptions) error {
	s := &summary{opt: opt.filled(), room: math.MaxInt}
	if opt.Width > 0 {
		s.room = s.opt.Width - labelWidth
	}
	if p.Stats.ExitNote != "" {
		s.line("command", "", clean(p.Stats.ExitNote))
	}
	s.line("samples", "", recorded(p))
	for _, f := range p.findings() {
		s.line("finding", sgrBad, f)
	}
	if p.Stats.Selection != "" {
		s.line("selection", "", clean(p.Stats.Selection))
	}
	s.completeness(&p.Stats)
	s.processor(p)
	s.way(&p.Stats)
	s.events(&p.Stats)
	if q := p.Stats.Suspended; q.Count > 0 {
		s.line("suspended", "", times(q)+fmt.Sprintf("   (%s)", plural(q.Count, "suspension")))
	}
	for _, part := range p.Stats.Parts {
		s.line("", "", times(part.Quantiles)+"   "+clean(part.Name))
	}
	for i, t := range p.Stats.Tries {
		label := ""
		if i == 0 {
			label = "answers"
		}
		s.line(label, "", fmt.Sprintf("%8s  %s, %s", Thousands(t.Count), clean(t.Verdict), clean(t.Result)))
	}
	if p.Stats.Retries > 0 {
		s.line("retries", "", plural(p.Stats.Retries, "suspension")+" retried")
	}
	if p.Stats.Lost > 0 {
		s.line("lost", sgrBad, plural(p.Stats.Lost, "sample")+" dropped")
	}
	for _, n := range p.Stats.Notes {
		s.line("note", "", clean(n))
	}
	_, err := io.WriteString(w, s.text.String())
	return err
}

// processor reports how much of the CPU time is in the profile, and how often it
// was sampled.
func (s *summary) processor(p *Profile) {
	label := "cpu"
	next := func(sgr, text string) { s.line(label, sgr, text); label = "" }
	if p.Stats.CPU != nil {
		for i, line := range p.cpuLines() {
			sgr := ""
			if i == 0 && p.lacksCPU() {
				sgr = sgrBad
			}
			next(sgr, line)
		}
	} else if count, _ := p.sampledCPU(); count > 0 && p.Stats.Selection == "" {
		why := map[string]string{WaySnapshot: " (--mode snapshot cannot)"}[p.Stats.Way]
		next("", "not measured for the whole process"+why+", so the share in the profile is unknown")
	}
	for _, line := range p.rateLines() {
		next("", line)
	}
}

// way reports how the samples were taken.
func (s *summary) way(st *Stats) {
	if st.Way != "" {
		s.line("way", "", clean(st.Way+": "+st.WayWhy))
		for _, t := range st.Taken {
			s.line("", "", clean(t))
		}
	}
}

// events reports the totals of the runtime's events.
func (s *summary) events(st *Stats) {
	for i := range st.Events {
		e := &st.Events[i]
		text := Thousands(e.Count)
		if many := e.Event == EventAllocation || e.Event == EventException; many && e.Seen > e.Count {
			text += " of " + Thousands(e.Seen)
		}
		if e.Event != EventAllocation && e.Sum > 0 {
			text += ", " + shortTime(time.Duration(e.Sum)) + " together, the longest " +
				shortTime(time.Duration(e.Longest))
			if e.Open > 0 {
				text += fmt.Sprintf(", %d still open", e.Open)
			}
		}
		if e.Event == EventAllocation {
			text += ", representing " + bytesOf(e.Sum)
		}
		if e.Complete > 0 || e.Count > 0 && e.Event != EventQueue && e.Event != EventStarved &&
			e.Event != EventPause {
			text += ", " + percent(e.Complete, e.Count) + " complete"
		}
		s.line(e.Event.String()+"s", "", text)
	}
}

// bytesOf formats a number of bytes.
func bytesOf(n int64) string {
	for _, u := range [...]struct {
		name string
		size float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if float64(n) >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func times(q Quantiles) string {
	return fmt.Sprintf("p50 %s   p99 %s   max %s", shortTime(q.P50), shortTime(q.P99), shortTime(q.Max))
}

// recorded describes the samples: number, duration, threads, and runtime.
func recorded(p *Profile) string {
	parts := []string{Thousands(p.Stats.Samples)}
	if p.Duration > 0 {
		parts[0] += " in " + shortTime(p.Duration)
	}
	parts = append(parts, plural(p.threadCount(), "thread"))
	if p.Runtime != "" {
		parts = append(parts, clean(p.Runtime))
	}
	return strings.Join(parts, ", ")
}

func (s *summary) completeness(st *Stats) {
	if st.Samples == 0 {
		return
	}
	good := sgrGood
	if st.Complete*100 < st.Samples*99 {
		good = sgrBad
	}
	s.line("complete", good, fmt.Sprintf("%s (%s)", percent(st.Complete, st.Samples), Thousands(st.Complete)))
	if bad := st.Samples - st.Complete; bad > 0 {
		s.line("incomplete", "", fmt.Sprintf("%s (%s)", percent(bad, st.Samples), Thousands(bad)))
	}
	for _, g := range sortedGaps(st) {
		s.line("", "", fmt.Sprintf("%8s  %s (%s)", percent(g.count, st.Samples),
			g.reason, Thousands(g.count)))
	}
}
