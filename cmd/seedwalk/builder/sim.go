// Package builder has the commands that builders of profilers use: sim, rules, capture, replay,
// and info.
//
// Sources: clr/api for the contracts of the profiling API; each package names its own.
//
// Glossary. A scenario is a rule of asynchronous stack walking, once kept and once broken.
//
// Strategy. A command reads its flags and calls the package that does the work.
//
// Known gaps: capture needs Linux on x86-64.
package builder

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/story"
)

const SimHelp = `Usage: seedwalk sim [--scenario NAME|all] [--run N | --explore] [--trace] [OPTION]...

Shows the rules of asynchronous stack walking in simulated processes: threads with real stacks, a
CLR, locks, and a collector. Each scenario shows one rule with two samplers. *broken* is a sampler
that breaks the rule: some order of steps deadlocks or faults. *kept* is seedwalk's own sampler: no
order does. Without --scenario the command lists all scenarios.

What to do with a scenario:
  (nothing more)   explain it: the rule and its reason, the shortest schedule that fails as a
                   timeline, who waits for whom with every stack, and a run that keeps the rule
  --explore        try every order of steps within the bound and count how they end
  --run N          run one random schedule; the same N gives the same run. Most single
                   schedules of a broken sampler pass, which is why such faults are hard to find

Options:
  --trace          the whole timeline, nothing shortened; with --run and --explore, the timeline too
  --broken, --kept one side only (default both)
  --preemptions N  at most N switches away from a thread that could continue; "all" means no bound.
                   Default: the scenario's own. Each further one takes about ten times as long
  --workers N      threads that explore the broken side (default: one per CPU)
  --arch NAME      amd64 (default) or arm64
  --svg FILE       draw who waits for whom in a deadlock; for a fault or a passing run, the timeline
  --dot FILE       write the deadlock as a Graphviz file
  --json           one object: "scenarios": [{name, rule, text, source, ends, clr, arch,
                   broken and kept: {interleavings, orders, deepest, pruned, exhausted, done,
                   deadlocks, judged, results, faults, endless, wrong, run, found: {outcome,
                   steps, hash, fault, choices, cycle, graph: {nodes, edges},
                   trace: [{step, thread, what}] (with --trace)}}}]
  --docs FOLDER    only write rules.md and its pictures, with all scenarios

How to read a timeline: each thread has a column, time runs down, the numbers count steps.
  | can run   . waits   ! suspension requested   # suspended
SuspendThread only requests the suspension. It is in effect once GetThreadContext has returned.

Examples:
  seedwalk sim
  seedwalk sim --scenario heap
  seedwalk sim --scenario two-samplers --svg deadlock.svg
  seedwalk sim --scenario gc-callback --run 7 --trace --broken
  seedwalk sim --scenario all --explore

Exit code: 0 as expected (broken fails as the rule warns, kept does not fail; with --run only kept
is checked), 1 otherwise, 2 wrong usage.
`

// simOptions are the options of the command.
type simOptions struct {
	scenario, preemptions, arch, svg, dot, docs string
	run                                         uint64
	isRun, explore, trace, broken, kept, asJSON bool
	workers                                     int
}

func Sim(args []string) int {
	o, code, done := simFlags(args)
	if done {
		return code
	}
	if o.scenario == "" && o.docs == "" {
		return o.list()
	}
	chosen := rules.All()
	if o.scenario != "" && o.scenario != "all" {
		r, err := rules.Find(o.scenario)
		if err != nil {
			return simUsage("%v", err)
		}
		chosen = []*rules.Rule{r}
	}
	for _, r := range chosen {
		o.apply(r)
	}
	if o.docs != "" {
		return simDocs(o.docs, chosen)
	}
	return o.show(chosen)
}

func simUsage(format string, args ...any) int {
	return cli.Fail("sim", cli.ExitUsage, fmt.Sprintf(format, args...))
}

func simFlags(args []string) (o *simOptions, code int, done bool) {
	o = &simOptions{}
	set := flag.NewFlagSet("sim", flag.ContinueOnError)
	set.StringVar(&o.scenario, "scenario", "", "")
	set.Uint64Var(&o.run, "run", 0, "")
	set.BoolVar(&o.explore, "explore", false, "")
	set.BoolVar(&o.trace, "trace", false, "")
	set.BoolVar(&o.broken, "broken", false, "")
	set.BoolVar(&o.kept, "kept", false, "")
	set.StringVar(&o.preemptions, "preemptions", "", "")
	set.IntVar(&o.workers, "workers", runtime.NumCPU(), "")
	set.StringVar(&o.arch, "arch", "amd64", "")
	set.StringVar(&o.svg, "svg", "", "")
	set.StringVar(&o.dot, "dot", "", "")
	set.StringVar(&o.docs, "docs", "", "")
	set.BoolVar(&o.asJSON, "json", false, "")
	if code, done := cli.Parse(set, SimHelp, args); done {
		return nil, code, true
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.isRun = given["run"]
	if !o.broken && !o.kept {
		o.broken, o.kept = true, true
	}
	if why := o.wrong(set.Args(), given); why != "" {
		return nil, simUsage("%s; see seedwalk sim --help", why), true
	}
	return o, cli.ExitOK, false
}

// wrong returns a message if the options are wrong or exclude each other, "" otherwise.
func (o *simOptions) wrong(rest []string, given map[string]bool) string {
	if len(rest) > 0 {
		return fmt.Sprintf("unexpected argument %q; name a scenario with --scenario", rest[0])
	}
	if o.scenario == "" {
		for _, name := range []string{"run", "explore", "trace", "broken", "kept",
			"preemptions", "svg", "dot"} {
			if given[name] {
				return "--" + name + " needs a --scenario"
			}
		}
	}
	if _, ok := preemptionBound(o.preemptions); !ok {
		return fmt.Sprintf("--preemptions %q is neither a number from 0 nor \"all\"", o.preemptions)
	}
	if _, ok := SimArchs[o.arch]; !ok {
		return fmt.Sprintf("no architecture %q: amd64 or arm64", o.arch)
	}
	switch {
	case o.isRun && o.explore:
		return "--run is one schedule, --explore all of them: choose one"
	case (o.svg != "" || o.dot != "") && o.scenario == "all":
		return "--svg and --dot draw one scenario, not all"
	case o.docs != "" && len(given) > 1:
		return "--docs cannot be combined with other options"
	case o.workers < 1:
		return "--workers must be at least 1"
	}
	return ""
}

var SimArchs = map[string]image.Arch{"amd64": image.AMD64, "arm64": image.ARM64}

// preemptionBound reads --preemptions; "" is 0, the rule's own.
func preemptionBound(s string) (bound int, ok bool) {
	switch s {
	case "":
		return 0, true
	case "all":
		return sched.Unbounded, true
	case "0":
		return sched.NoPreemption, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

// apply gives r the options' bounds.
func (o *simOptions) apply(r *rules.Rule) {
	r.Setup.Arch = SimArchs[o.arch]
	r.Bounds.Workers = o.workers
	if p, _ := preemptionBound(o.preemptions); p != 0 {
		r.Bounds.Preemptions, r.Reach = p, 0
	}
}

// simDocs writes the documentation.
func simDocs(folder string, all []*rules.Rule) int {
	var stories []*story.Story
	for _, r := range all {
		stop := watch(r)
		s := story.Tell(r, true, true)
		stop()
		for _, wrong := range s.Wrong() {
			return cli.Fail("sim", cli.ExitWrong, "not as it should be, not written: "+wrong)
		}
		stories = append(stories, s)
	}
	if err := story.Write(folder, stories); err != nil {
		return cli.Fail("sim", cli.ExitWrong, fmt.Errorf("%w; choose a folder you may write to", err))
	}
	return cli.ExitOK
}
