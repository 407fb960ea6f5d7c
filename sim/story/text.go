package story

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// width is the width of running text, in runes.
const width = 96

// Sampler is the name of the profiler's thread in every world that has one. The story of a kept side's
// run stops at the end of this thread.
const Sampler = "sampler"

// Text writes the story for a reader who is new to the subject. If whole is true, timelines are not
// shortened.
func (s *Story) Text(w io.Writer, whole bool) {
	r := s.Rule
	fmt.Fprintf(w, "%s: %s\n\n", r.Name, r.Line)
	paragraph(w, "Why", r.Text)
	paragraph(w, "Source", r.Source)
	paragraph(w, "World", World(r))
	if s.Broken != nil {
		fmt.Fprintf(w, "\nBROKEN: a sampler written to break the rule\n\n%s\n",
			fill(s.brokenSummary(), width, ""))
		if s.Failing != nil {
			fmt.Fprintf(w, "\n%s\n\n%s", failingTitle(s.Failing), timeline(s.Failing, "", whole))
			if g := s.Failing.Graph; g != nil {
				fmt.Fprintf(w, "\nWhich thread waits for which, and where each is:\n\n%s", indent(g.Text()))
			}
		}
	}
	if s.Kept != nil {
		fmt.Fprintf(w, "\nKEPT: seedwalk's own sampler in the same process\n\n%s\n",
			fill(s.keptSummary(), width, ""))
		if s.Passing != nil {
			fmt.Fprintf(w, "\nOne of them (run %d):\n\n%s", s.PassingRun, timeline(s.Passing, Sampler, whole))
		}
	}
	for _, wrong := range s.Wrong() {
		fmt.Fprintf(w, "\nNOT AS IT SHOULD BE: %s\n", wrong)
	}
}

// World describes the simulated CLR and system of a rule.
func World(r *rules.Rule) string {
	return fmt.Sprintf("CLR %v, %v, %s images", r.Setup.Variant, r.Setup.Arch,
		strings.ToUpper(r.Setup.Format().String()))
}

// Bounds returns the text about the orders of steps that are tried, if p bounds their preemptions.
func Bounds(p int) string {
	switch {
	case p == sched.NoPreemption:
		return "every order of steps in which nobody is preempted"
	case p <= 0:
		return "every order of steps"
	case p == 1:
		return "every order of steps with at most 1 preemption"
	default:
		return fmt.Sprintf("every order of steps with at most %d preemptions", p)
	}
}

func (s *Story) brokenSummary() string { return summary(s.Rule.Bounds.Preemptions, s.Broken) }

func summary(bound int, side *Side) string {
	rep := &side.Report
	return fmt.Sprintf("%s interleavings, %s: %s.", Number(rep.Interleavings), Bounds(bound), counts(rep))
}

func (s *Story) keptSummary() string {
	rep, bound := &s.Kept.Report, s.Rule.Preemptions()
	if rep.First != nil {
		return summary(bound, s.Kept)
	}
	if s.Rule.Idle {
		return fmt.Sprintf("The sampler passes %s. These runs are not counted: the sampler cannot break the rule here, because it never takes the forbidden step.", Bounds(bound))
	}
	return fmt.Sprintf("The sampler passes %s: %s orders, through %s different states. A sample was judged in %s of them, with %s distinct results. In %s of them %s.",
		Bounds(bound), Number(int(rep.Orders.All)), Number(rep.States), Number(int(rep.Orders.Judged)),
		Number(len(rep.Results)), Number(int(rep.Orders.Met)), s.Rule.Hazard)
}

// counts lists the numbers of runs that did not end well, by how they ended.
func counts(rep *sched.Report) string {
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{{rep.Deadlocks, "deadlock", "deadlocks"}, {rep.Faults, "fault", "faults"},
		{rep.StepLimits, "run without end", "runs without end"}} {
		switch c.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+c.one)
		default:
			parts = append(parts, Number(c.n)+" "+c.many)
		}
	}
	if parts == nil {
		return "nothing found"
	}
	return strings.Join(parts, ", ")
}

func failingTitle(r *sched.Result) string {
	if r.Outcome == sched.StepLimit {
		return "One that never ends:"
	}
	return "The shortest of them:"
}

// timeline returns the timeline of a run, without the graph, which is written separately.
func timeline(r *sched.Result, untilEnd string, whole bool) string {
	c, left := *r, ""
	if !whole {
		short, what := Trim(r, untilEnd)
		c, left = *short, what
	}
	c.Graph = nil
	if r.Fault != "" && !whole {
		c.Fault = firstLine(r.Fault)
	}
	out := indent(c.Timeline())
	if left != "" {
		out += "  " + left + "\n"
	}
	return out
}

func paragraph(w io.Writer, head, text string) {
	margin := strings.Repeat(" ", 10)
	body := fill(text, width-len(margin), margin)
	fmt.Fprintf(w, "  %-8s%s\n", head, strings.TrimPrefix(body, margin))
}

// fill breaks text at spaces into lines of at most n runes, with a margin.
func fill(text string, n int, margin string) string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			out, line = append(out, margin+line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(out, margin+line), "\n")
}

func indent(text string) string {
	var b strings.Builder
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(strings.TrimRight("  "+l, " ") + "\n")
	}
	return b.String()
}

// Number writes n with commas between thousands.
func Number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
