package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// program is a random small world: for each actor a list of calls. It holds
// pruning against exploration without, over whatever calls can be combined.
type program struct {
	code   [][]int
	bodies []*Actor
	locks  []*Lock
	shared uint64
	log    func(end string)
}

const calls = 12

func randomProgram(run uint64) [][]int {
	ch := Random(run)
	code := make([][]int, 2+ch.Choose(2))
	for i := range code {
		for range 6/len(code) + ch.Choose(2) {
			code[i] = append(code[i], ch.Choose(calls)<<4|ch.Choose(16))
		}
	}
	return code
}

func (p program) build(w *World) {
	p.locks = []*Lock{{Name: "l"}, {Name: "m", Recursive: true}}
	p.bodies = nil
	w.Hash = func() uint64 { return p.shared }
	w.AtEnd = func() string {
		end := fmt.Sprint(p.shared)
		for _, a := range p.bodies {
			end += fmt.Sprintf(" %d%v", a.suspends, a.stopped)
		}
		p.log(end)
		return ""
	}
	for i := range p.code {
		p.bodies = append(p.bodies, w.Go(string(rune('A'+i)), func(a *Actor) { p.run(a, p.code[i]) }))
	}
}

func (p *program) run(a *Actor, code []int) {
	acc := uint64(a.ID())
	for pc, c := range code {
		other := p.bodies[c&15%len(p.bodies)]
		lock := p.locks[c&1]
		switch c >> 4 {
		case 0:
			a.Yield("write")
			p.shared = p.shared*7 + acc
		case 1:
			a.Yield("read")
			acc = acc*5 + p.shared
			a.Observe(p.shared)
		case 2:
			a.Lock(lock)
		case 3:
			if lock.Owner() == a {
				a.Unlock(lock)
			}
		case 4:
			if a.TryLock(lock) {
				acc++
			}
		case 5:
			prev, _ := a.SuspendThread(other)
			acc = acc*3 + uint64(prev)
		case 6:
			prev, _ := a.ResumeThread(other)
			acc = acc*3 + uint64(prev)
		case 7:
			if a.Stop(other) != nil {
				acc += 11
			}
		case 8:
			by := acc // captured itself, acc would be shared state that no hash knows
			a.Signal(other, func(h *Actor) { p.shared = p.shared*13 + by })
		case 9:
			acc += uint64(a.Choose(2, "which"))
		case 10:
			a.WaitUntil("even", func() bool { return p.shared%2 == 0 })
		case 11:
			acc = uint64(pc)
			a.Rebase(acc)
			if c&15 == 0 && pc > 0 {
				by := acc
				a.w.Go("child", func(b *Actor) { b.Yield("write"); p.shared = p.shared*17 + by })
			}
		}
	}
}

// verdict is the set of ends of a world, and how often it failed at all.
func verdict(code [][]int, opt ExploreOptions) (ends []string, r Report) {
	seen := map[string]bool{}
	r = Explore(opt, program{code: code, log: func(end string) { seen[end] = true }}.build)
	ends = slices.Sorted(maps.Keys(seen))
	if r.Deadlocks > 0 {
		ends = append(ends, "deadlock")
	}
	if r.Faults > 0 {
		ends = append(ends, "fault "+r.First.Fault)
	}
	if r.StepLimits > 0 {
		ends = append(ends, "step limit")
	}
	return ends, r
}

func TestPruneOnRandomPrograms(t *testing.T) {
	programs, failing, saved := 0, 0, 0
	for run := range uint64(400) {
		code := randomProgram(run)
		for _, bound := range []int{Unbounded, 1} {
			opt := ExploreOptions{Options: Options{Preemptions: bound, MaxSteps: 9 + int(run%8)},
				MaxRuns: 5000, Split: -1}
			want, all := verdict(code, opt)
			if !all.Exhausted {
				continue
			}
			programs++
			failing += min(1, all.Deadlocks)
			for _, prune := range []Prune{PruneObserved, PruneSeen} {
				opt.Prune = prune
				got, r := verdict(code, opt)
				must.True(t, slices.Equal(got, want) && r.Exhausted,
					"run %d prune %d bound %d: %x\n%v\nwithout pruning:\n%v", run, prune, bound, code, got,
					want)
				saved += all.Interleavings - r.Interleavings
			}
		}
	}
	expect.True(t, programs >= 400 && failing >= 50 && saved >= 10000,
		"%d programs, %d with deadlocks, %d runs saved: the test does not test", programs, failing, saved)
	t.Logf("%d programs, %d with deadlocks, %d runs saved", programs, failing, saved)
}
