package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// TextOptions limits the text output.
type TextOptions struct {
	Top   int  // number of longest waits, 0 = 20
	Width int  // columns of a line, 0 = 110
	Idle  bool // the thread pool's own waits too
}

type textWriter struct {
	*bufio.Writer
	a    *waits.Analysis
	opt  TextOptions
	name *stackNames
	own  *waits.Owners
	seen map[siteID]int64
}

type siteID struct {
	kind  waits.Kind
	stack waits.StackID
}

// WriteText writes tables for a terminal.
func WriteText(w io.Writer, a *waits.Analysis, opt TextOptions) error {
	if opt.Top <= 0 {
		opt.Top = 20
	}
	if opt.Width <= 0 {
		opt.Width = 110
	}
	t := &textWriter{bufio.NewWriter(w), a, opt, newNames(a), waits.NewOwners(a), map[siteID]int64{}}
	for i := range a.Sites {
		s := &a.Sites[i]
		t.seen[siteID{s.Kind, s.Stack}] = s.Count
	}
	t.summary()
	t.waits()
	t.sites()
	t.stacks()
	return t.Flush()
}

func (t *textWriter) summary() {
	a := t.a
	if line := a.Unseen(); line != "" {
		fmt.Fprintln(t, "WARNING: "+line)
	}
	count, nanos := a.Total()
	fmt.Fprintf(t, "%s, %s together, on %s", waitsIn(count), span(nanos),
		counted(int64(len(a.Threads)), "thread"))
	if a.Trace.ProcessID != 0 {
		fmt.Fprintf(t, " of process %d", a.Trace.ProcessID)
	}
	fmt.Fprintf(t, " in %s; %s lost\n", span(int64(a.At(a.Last))), counted(a.Counts.Lost, "event"))
	if a.Unreliable > 0 {
		are, they := "are", "they are"
		if a.Unreliable == 1 {
			are, they = "is", "it is"
		}
		fmt.Fprintf(t, "%s %s unreliable: events of the thread were lost, or the wait was interrupted; %s not in the sums\n", waitsIn(a.Unreliable), are, they)
	}
	if n := a.Names.Starved(); n > 0 {
		fmt.Fprintf(t, "thread pool starvation: all threads were blocked or busy, so the runtime added one %s\n", counted(n, "time"))
	}
	for _, p := range a.Partial() {
		fmt.Fprintf(t, "partial: %s\n", clean(p))
	}
}

// shown reports whether a wait is in the tables, and returns its stack.
func (t *textWriter) shown(id waits.StackID, when uint64) ([]waits.Frame, bool) {
	f := t.name.of(id, when)
	return f, t.opt.Idle || !waits.Idle(f)
}

func (t *textWriter) waits() {
	a := t.a
	list := make([]*waits.Wait, 0, len(a.Waits))
	idle := 0
	for i := range a.Waits {
		w := &a.Waits[i]
		if _, ok := t.shown(w.Stack, w.Start); !ok {
			idle++
		} else if w.Depth == 0 && w.State != waits.Unreliable {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(x, y *waits.Wait) int { return cmp.Compare(y.Nanos, x.Nanos) })
	if idle > 0 {
		fmt.Fprintf(t, "%s of the thread pool and of starting threads not shown; use --idle to show them\n",
			counted(int64(idle), "idle wait"))
	}
	if len(list) == 0 && a.Blind() {
		return
	}
	if len(list) == 0 {
		none := "no waits."
		if idle > 0 {
			none = "no other waits."
		}
		fmt.Fprintln(t, none+" A wait that began before and goes on is not reported: seedwalk hang and seedwalk stack show it.")
		fmt.Fprintln(t, "The runtime does not report await, Thread.Sleep, SignalAndWait, uncontended waits, or time spent spinning.")
		return
	}
	fmt.Fprintf(t, "\nLongest waits\n%12s  %-12s %8s %8s %7s %10s  %s\n", "duration", "kind", "thread",
		"owner", "seen", "at", "where (leaf first)")
	for _, w := range list[:min(len(list), t.opt.Top)] {
		t.wait(w)
	}
	if more := len(list) - t.opt.Top; more > 0 || a.Unlisted > 0 {
		fmt.Fprintf(t, "%12s  and %s more\n", "", number(int64(max(more, 0))+a.Unlisted))
	}
}

func (t *textWriter) wait(w *waits.Wait) {
	owner := "-"
	if w.Owner != 0 {
		owner = fmt.Sprint(w.Owner)
	}
	frames := t.name.of(w.Stack, w.Start)
	head := fmt.Sprintf("%12s  %-12s %8d %8s %7d %9.3fs  ", bound(w.State)+span(w.Nanos), w.Kind, w.Thread,
		owner, t.seen[siteID{w.Kind, w.Stack}], t.a.At(w.Start).Seconds())
	fmt.Fprintln(t, head+fit(where(frames), max(t.opt.Width-len(head), 40)))
	chain, circle := t.own.Chain(w)
	for _, i := range chain {
		c := &t.a.Waits[i]
		fmt.Fprintf(t, "%14s its owner, thread %d, waits too (%v): %s\n", "", c.Thread, c.Kind,
			fit(where(t.name.of(c.Stack, c.Start)), 70))
	}
	if circle {
		fmt.Fprintf(t, "%14s the owners wait for each other in a circle\n", "")
	}
}

// bound marks lower bounds.
func bound(s waits.State) string {
	if s == waits.BegunEarly || s == waits.StillOpen {
		return ">"
	}
	return ""
}

// where writes a stack in one line, without the leaves in System.Threading.
func where(frames []waits.Frame) string {
	for len(frames) > 1 && strings.HasPrefix(frames[0].Name, "System.Threading.") {
		frames = frames[1:]
	}
	return strings.Join(names(frames), " < ")
}

func (t *textWriter) sites() {
	head := fmt.Sprintf("\nPlaces\n%12s %12s %8s  %-12s %s\n", "together", "longest",
		"times", "kind", "where (leaf first)")
	t.most(10, head, func(s *waits.Site, frames []waits.Frame) {
		head := fmt.Sprintf("%12s %12s %8d  %-12s ", span(s.Nanos), span(s.Max), s.Count, s.Kind)
		fmt.Fprintln(t, head+fit(where(frames), max(t.opt.Width-len(head), 40)))
	})
}

// most writes the stacks of the places with the most time. Without any, it omits the title.
func (t *textWriter) most(n int, title string, f func(s *waits.Site, frames []waits.Frame)) {
	for i := range t.a.Sites {
		s := &t.a.Sites[i]
		frames, ok := t.shown(s.Stack, s.When)
		if !ok || s.Count == 0 {
			continue
		}
		if n--; n < 0 {
			break
		}
		fmt.Fprint(t, title)
		title = ""
		f(s, frames)
	}
}

func (t *textWriter) stacks() {
	t.most(3, "\nStacks with the most time\n", func(s *waits.Site, frames []waits.Frame) {
		fmt.Fprintf(t, "  %s in %s (%v)\n", span(s.Nanos), waitsIn(s.Count), s.Kind)
		for _, name := range append(names(t.a.Leaves(s.Native, s.When)),
			names(t.a.Whole(s.Native, frames, s.When))...) {
			fmt.Fprintf(t, "    %s\n", name)
		}
	})
}

func waitsIn(n int64) string { return counted(n, "wait") }

// counted formats n with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

func fit(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// span formats a duration.
func span(nanos int64) string {
	d := time.Duration(nanos)
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f us", float64(d)/1e3)
}

func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
