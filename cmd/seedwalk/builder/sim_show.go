package builder

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/story"
)

// simSide is the result of one side of a scenario.
type simSide struct {
	broken bool
	*story.Side
	run   *uint64       // number of the run, if there was only one
	found *sched.Result // the run to show, or nil
}

func (s *simSide) name() string {
	if s.broken {
		return "broken"
	}
	return "kept"
}

// list lists the scenarios, grouped by what happens if their rule is broken.
func (o *simOptions) list() int {
	if o.asJSON {
		return simJSON(cli.Stdout, rules.All(), nil, false)
	}
	for i, g := range []struct {
		wants sched.Outcome
		head  string
	}{
		{sched.Deadlock, "Broken, these end in a deadlock:"},
		{sched.Fault, "Broken, these end the process, or give a wrong stack:"},
		{sched.StepLimit, "Broken, these retry for ever while a thread is suspended:"},
	} {
		if i > 0 {
			fmt.Fprintln(cli.Stdout)
		}
		fmt.Fprintln(cli.Stdout, g.head)
		for _, r := range rules.All() {
			if r.Wants == g.wants {
				fmt.Fprintf(cli.Stdout, "  %-20s %s\n", r.Name, r.Line+r.About())
			}
		}
	}
	fmt.Fprint(cli.Stdout, "\nseedwalk sim --scenario NAME explains one; seedwalk sim --help lists the options.\n")
	return cli.ExitOK
}

// show runs each chosen scenario, prints or draws its result, and returns the exit code.
func (o *simOptions) show(chosen []*rules.Rule) int {
	code, total := cli.ExitOK, 0
	sides := map[string][]*simSide{}
	for i, r := range chosen {
		stop := watch(r)
		told := o.look(r)
		stop()
		if !o.asJSON {
			if i > 0 && !o.compact() {
				fmt.Fprint(cli.Stdout, "\n\n")
			}
			o.print(r, told)
		}
		for _, s := range told.sides {
			total += s.Report.Interleavings + s.Report.Pruned
			if s.Wrong != "" {
				code = cli.ExitWrong
			}
		}
		sides[r.Name] = told.sides
		if !o.draw(r, told.sides) {
			code = cli.ExitWrong
		}
	}
	switch {
	case o.asJSON:
		simJSON(cli.Stdout, chosen, sides, o.trace)
	case o.explore && len(chosen) > 1:
		fmt.Fprintf(cli.Stdout, "%s runs in all\n", story.Number(total))
	}
	return code
}

// compact reports whether each scenario is printed in a line or two.
func (o *simOptions) compact() bool { return (o.explore || o.isRun) && !o.trace }

// look is the result of a scenario: its sides and, if it is to be shown, its story.
type look struct {
	sides []*simSide
	story *story.Story
}

func (o *simOptions) look(r *rules.Rule) (l look) {
	if !o.explore && !o.isRun {
		l.story = story.Tell(r, o.broken, o.kept)
		if o.broken {
			l.sides = append(l.sides, &simSide{broken: true, Side: l.story.Broken, found: l.story.Failing})
		}
		if o.kept {
			s := &simSide{Side: l.story.Kept, found: l.story.Passing}
			if first := l.story.Kept.Report.First; first != nil {
				s.found = first
			}
			l.sides = append(l.sides, s)
		}
		return l
	}
	for _, broken := range []bool{true, false} {
		switch {
		case broken && !o.broken || !broken && !o.kept:
		case o.explore:
			side := story.Explore(r, broken)
			l.sides = append(l.sides, &simSide{broken: broken, Side: side, found: side.Report.First})
		default:
			l.sides = append(l.sides, runOnce(r, broken, o.run))
		}
	}
	return l
}

// runOnce runs one schedule of one side.
func runOnce(r *rules.Rule, broken bool, n uint64) *simSide {
	res := r.Run(broken, sched.Random(n))
	s := &simSide{broken: broken, Side: &story.Side{}, run: &n, found: &res}
	s.Report.Interleavings, s.Report.MaxDepth = 1, res.Steps
	switch res.Outcome {
	case sched.Done:
		s.Report.Done++
	case sched.Deadlock:
		s.Report.Deadlocks++
	case sched.Fault:
		s.Report.Faults++
	default:
		s.Report.StepLimits++
	}
	if !broken && res.Outcome != sched.Done {
		s.Wrong = fmt.Sprintf("%s, kept: %v in run %d", r.Name, res.Outcome, n)
	}
	return s
}

func (o *simOptions) print(r *rules.Rule, l look) {
	if l.story != nil {
		l.story.Text(cli.Stdout, o.trace)
		return
	}
	for _, s := range l.sides {
		if s.run != nil {
			fmt.Fprintf(cli.Stdout, "%-20s %-6s  run %d: %v after %d steps, hash %016x\n", r.Name, s.name(),
				*s.run, s.found.Outcome, s.found.Steps, s.found.Hash)
		} else {
			fmt.Fprintf(cli.Stdout, "%-20s %-6s  %s\n", r.Name, s.name(), story.Summary(&s.Report))
		}
		if o.trace && s.found != nil {
			fmt.Fprintf(cli.Stdout, "\n%s\n", s.found.Timeline())
		}
		if s.Wrong != "" {
			fmt.Fprintf(cli.Stdout, "NOT AS IT SHOULD BE: %s\n", s.Wrong)
		}
	}
}

// draw writes the pictures that the user asked for. They show the first side with a deadlock's graph, else
// the first side with a run. It returns false if it cannot write them.
func (o *simOptions) draw(r *rules.Rule, sides []*simSide) bool {
	if o.svg == "" && o.dot == "" {
		return true
	}
	var of *sched.Result
	for _, s := range sides {
		if of == nil || of.Graph == nil && s.found != nil && s.found.Graph != nil {
			of = s.found
		}
	}
	switch {
	case of == nil:
		fmt.Fprintf(os.Stderr, "seedwalk sim: no failure was found, so there is nothing to draw; leave out --explore or --kept\n")
		return false
	case o.dot != "" && of.Graph == nil:
		fmt.Fprintf(os.Stderr, "seedwalk sim: no deadlock to draw: %s ends in %q here; --svg draws its timeline\n", r.Name, of.Outcome)
		return false
	}
	ok := true
	if o.svg != "" {
		picture := story.Picture(of)
		ok = writePicture(o.svg, picture)
	}
	if o.dot != "" {
		ok = writePicture(o.dot, of.Graph.DOT()) && ok
	}
	return ok
}

func writePicture(path, text string) bool {
	var err error
	if path == "-" {
		_, err = io.WriteString(cli.Stdout, text)
	} else {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk sim: %v; choose a file you may write\n", err)
	}
	return err == nil
}

// When and how often a long exploration reports its progress.
const watchFirst, watchEvery = time.Second, 200 * time.Millisecond

// watch counts the runs of r and shows their number on the terminal until stop is called. It does nothing if
// standard error is no terminal.
func watch(r *rules.Rule) (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	var runs atomic.Int64
	count := func(side func(*sim.World)) func(*sim.World) {
		return func(w *sim.World) { runs.Add(1); side(w) }
	}
	r.Broken, r.Kept = count(r.Broken), count(r.Kept)
	quit, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		shown := false
		for wait := watchFirst; ; wait = watchEvery {
			select {
			case <-quit:
				if shown {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
				shown = true
				fmt.Fprintf(os.Stderr, "\rseedwalk sim: %s: %s runs\x1b[K", r.Name,
					story.Number(int(runs.Load())))
			}
		}
	}()
	return func() { close(quit); <-ended }
}
