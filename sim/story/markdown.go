package story

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Page is the file of the rules. The folder of its pictures is beside it.
const (
	Page     = "rules.md"
	Pictures = "rules"
)

// Docs returns the files of the documentation, by path below its folder.
func Docs(stories []*Story) map[string]string {
	files := map[string]string{}
	var b strings.Builder
	b.WriteString(preface)
	contents(&b, stories)
	chapter(&b, files)
	for _, s := range stories {
		s.markdown(&b, files)
	}
	told(&b)
	files[Page] = b.String()
	return files
}

const preface = `# The rules of asynchronous stack walking

<!-- Written by "make rules" from the scenarios in sim/rules: do not edit. -->

A profiler that walks the stack of another thread works inside a process in which that thread is stopped. This page lists the rules for
that: what a profiler may do, what it may not do, and why. Each rule has its source and a small world that shows it. The simulator
(` + "`sim/`" + `) runs a process with threads on real stacks, a CLR, locks, and a collector, and tries every order of their steps.

- **broken** is a sampler that breaks the rule. The page shows its shortest schedule that fails.
- **kept** is seedwalk's own sampler, unchanged, in the same process. Every order of steps within the stated bound was tried. The page says
  so if no mistake of the sampler could fail there. For the others it says how many runs met what makes the rule necessary.
- **Enforced by** names the tests or the design that make seedwalk keep the rule. **Provoked** names the real CLR on which breaking it failed.

A timeline has one column for each thread. Time runs down, and the numbers count steps. A *preemption* is a switch away from a thread that
could continue. Stacks are printed leaf first: ` + "`code!`" + ` is managed code, ` + "`clr!`" + ` the runtime, ` + "`app!`" + ` and ` + "`system!`" + ` native
code. A *marker* is the callback with FunctionID 0, which the CLR makes for a block of unmanaged frames. A *seed* is the register context
from which the CLR starts its walk.

` + "`seedwalk sim --scenario heap`" + ` prints a rule with its pictures as text. ` + "`seedwalk sim --scenario heap --run 7 --trace`" + ` prints
one run.

`

func contents(b *strings.Builder, stories []*Story) {
	b.WriteString("| scenario | rule | when it is broken |\n|---|---|---|\n")
	for _, s := range stories {
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s |\n", s.Rule.Name, s.Rule.Name,
			cell(s.Rule.Line+s.Rule.About()), Ends(s.Rule))
	}
	for _, r := range rules.TextRules() {
		fmt.Fprintf(b, "| [%s](#%s) | %s | not shown |\n", r.Name, r.Name, cell(r.Line))
	}
}

// Ends returns a word for the result of breaking a rule.
func Ends(r *rules.Rule) string {
	switch r.Wants {
	case sched.Deadlock:
		return "deadlock"
	case sched.StepLimit:
		return "never ends"
	}
	return "fault"
}

// cell makes text safe inside a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func (s *Story) markdown(b *strings.Builder, files map[string]string) {
	r := s.Rule
	fmt.Fprintf(b, "\n## %s\n\n**%s**\n\n%s\n\n*Source: %s. World: %s.* ", r.Name, r.Line,
		fill(r.Text, 120, ""), r.Source, World(r))
	behind(b, r.Enforced, r.Provoked)
	b.WriteString("\n")
	fmt.Fprintf(b, "### %s, broken\n\n%s\n\n", r.Name, s.brokenSummary())
	if f := s.Failing; f != nil {
		short, _ := Trim(f, "")
		fmt.Fprintf(b, "%s\n\n", failingTitle(f))
		picture(b, files, r.Name, "timeline", Sequence(short))
		if f.Graph != nil {
			b.WriteString("\nWhich thread waits for which, and where each is:\n\n")
			picture(b, files, r.Name, "graph", f.Graph.SVG())
		}
	}
	fmt.Fprintf(b, "\n### %s, kept\n\n%s\n", r.Name, s.keptSummary())
	if r.Idle {
		b.WriteString("\nThe tests named above enforce the rule.\n")
	}
	if p := s.Passing; p != nil {
		fmt.Fprintf(b, "\nOne of them, of %d steps: `seedwalk sim --scenario %s --kept --run %d --trace`\n",
			p.Steps, r.Name, s.PassingRun)
	}
	s.locks(b)
}

// locks writes the locks for which a rule with a parameter was explored.
func (s *Story) locks(b *strings.Builder) {
	r := s.Rule
	if len(r.Locks) == 0 {
		return
	}
	fmt.Fprintf(b, "\nBoth sides are shown for the lock `%s`; the other locks make the same worlds. `seedwalk sim --scenario LOCK` shows each.\n", r.Locks[0].Name)
	for i := range r.Locks {
		l := r.With(&r.Locks[i])
		fmt.Fprintf(b, "\n### %s\n\n**%s**\n\n%s\n\n*Source: %s.* ", l.Name, l.Line,
			fill(l.Text, 120, ""), l.Source)
		behind(b, l.Enforced, l.Provoked)
		side := &Side{}
		if i < len(s.Locks) {
			side = s.Locks[i]
		}
		fmt.Fprintf(b, "\nBroken:\n\n%s\n", summary(l.Bounds.Preemptions, side))
	}
}

func picture(b *strings.Builder, files map[string]string, name, what, svg string) {
	path := fmt.Sprintf("%s/%s-%s.svg", Pictures, name, what)
	files[path] = svg
	fmt.Fprintf(b, "![%s: %s](%s)\n", name, what, path)
}
