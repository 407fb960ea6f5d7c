// Package worlds makes large random worlds of package sim from a number. They have
// every CLR variant, both architectures, and functions of random shapes. Their
// threads do random nested things while the product's sampler looks at them.
//
// Sources: those of packages sim and vm.
//
// Glossary. A *run* is the number that seeds everything random: world, code, programs,
// and schedule. A *program* is what a thread does. An *unreported* frame is a frame of a
// dynamic or hidden method between reported ones, which the CLR does not report by
// contract.
//
// Strategy. Package sim compares every merged stack, verdict, and seed with the
// truth. A difference is a fault of the world, which names its run. The samples
// are counted by kind and printed as a table, which shows a world in which nothing
// happens. Damage (damage.go) changes what the sampler captured, to see what bad
// seeds do.
//
// Known gaps: programs take locks in one order only, and never wait for a collection while
// they hold one. So no world has a deadlock of the application itself. No native thread that
// the CLR does not know creates a managed thread.
package worlds

import (
	"fmt"
	"math/rand/v2"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// kits is how many kits of random shapes there are of each architecture and
// format. They are shared, since making one takes as long as a world.
const kits = 12

// maxSteps bounds a world, generously: who reaches it goes round in circles.
const maxSteps = 400_000

// stackSize of the threads of random worlds, bytes.
const stackSize = 0xc000

// Report is what became of a world.
type Report struct {
	Run    uint64
	Setup  sim.Setup
	Result sched.Result
	Tally  sim.Tally
	Counts sim.Counts
}

// Rerun reports how to see the world again.
func Rerun(run uint64) string {
	return fmt.Sprintf("go test ./sim/worlds -run TestWorld -world %d", run)
}

// Err reports what went wrong, nil if nothing did.
func (r *Report) Err() error {
	if r.Result.Outcome == sched.Done {
		return nil
	}
	graph := ""
	if r.Result.Graph != nil {
		graph = "\n" + r.Result.Graph.Text()
	}
	return fmt.Errorf("world %d (%v, %v): %v after %d steps: %s%s\nagain: %s", r.Run,
		r.Setup.Variant, r.Setup.Arch,
		r.Result.Outcome, r.Result.Steps, r.Result.Fault, graph, Rerun(r.Run))
}

// setup draws the world's kind.
func setup(rng *rand.Rand) sim.Setup {
	vs := vm.Variants()
	return sim.Setup{
		Variant: vs[rng.IntN(len(vs))],
		Arch:    image.Arch(rng.IntN(2)),
		Run:     1 + rng.Uint64N(kits),
		Fine:    rng.IntN(3) == 0,
		Stack:   stackSize,
	}
}

// Options of Run.
type Options struct {
	Trace  bool
	Damage *Damage // to what the sampler captures; nil: none
	Setup  func(s *sim.Setup)
	Rounds int // of the sampler; 0: drawn

	Chooser sched.Chooser      // of the schedule; nil: drawn
	Prepare func(w *sim.World) // once the world is made
}

// Run makes the world of a number and runs it.
func Run(run uint64, o Options) Report {
	rng := rand.New(rand.NewPCG(run, 0x5eed))
	s := setup(rng)
	if o.Setup != nil {
		o.Setup(&s)
	}
	r := Report{Run: run, Setup: s}
	ch := o.Chooser
	if ch == nil {
		ch = sched.Random(run)
	}
	ws := sched.New(ch, sched.Options{MaxSteps: maxSteps, Trace: o.Trace})
	w, err := sim.NewWorld(ws, s)
	if err != nil {
		panic(err) // a kit that cannot be made: no world can
	}
	if rng.IntN(2) == 0 {
		w.Specials = &managed.Specials{IsMethod: func(ip uint64) bool {
			id, hr := w.Host.FunctionFromIP(ip)
			return !hr.Failed() && id != 0
		}}
	}
	w.CodeTables = s.Arch == image.AMD64 && run%2 == 0 // whatever the CLR: .NET 9 is the first to have them
	// The rest have only the code before a seed, like the C library on Windows for methods new to it.
	w.SeedTables, w.SeedLearns = run/6%3 == 0, run/6%3 == 2
	if s.Variant.Windows() {
		w.Redirects(interruptible(run))
	}
	if o.Damage != nil {
		o.Damage.to(w, rng)
	}
	w.Host.Interval = rng.IntN(30)
	if o.Prepare != nil {
		o.Prepare(w)
	}
	ws.AtEnd = func() string { return balanced(w) }
	populate(w, rng)
	rounds := 2 + rng.IntN(6)
	if o.Rounds != 0 {
		rounds = o.Rounds
	}
	w.Host.Sampler(func(*sched.Actor) { r.Tally = w.Host.SampleAll(rounds) })
	r.Result = ws.Run()
	r.Counts = w.Host.Counts
	return r
}

// interruptible draws which managed code of a world the JIT made fully
// interruptible: 64 bytes at a time, none of it in a quarter of the worlds and
// nearly all in another.
func interruptible(run uint64) func(ip uint64) bool {
	rng := rand.New(rand.NewPCG(run, 0x5747))
	share, key := rng.Uint64N(4), rng.Uint64()|1
	return func(ip uint64) bool { return (ip>>6*key)>>61 < share*5/2 }
}

// balanced is what must hold at a world's end.
func balanced(w *sim.World) string {
	for _, t := range w.Threads() {
		if n := t.A.Suspends(); n != 0 && !t.A.Ended() { // one that ended in its grace keeps its count
			return fmt.Sprintf("%s is left with suspend count %d", t.A.Name(), n)
		}
		if t.Hijack != nil && t.Hijack.Owner() != nil {
			return t.A.Name() + " is left with its hijack lock taken"
		}
	}
	if w.CLR.Suspending() {
		return "the runtime is left suspended"
	}
	if c := &w.Host.Counts; c.Suspends != c.Resumes {
		return fmt.Sprintf("%d suspensions, %d resumes", c.Suspends, c.Resumes)
	}
	return ""
}

// populate starts the threads of a world.
func populate(w *sim.World, rng *rand.Rand) {
	n := 3 + rng.IntN(6)
	c := &crowd{w: w, left: 4}
	for i := range n {
		c.start(fmt.Sprintf("thread %d", i), rng, 16+rng.IntN(48))
	}
}
