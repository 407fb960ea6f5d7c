package judge

import (
	"strconv"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// extra is the number of frames that a walk may have beyond those of the truth. With them, the
// judge can show where a walk continues that should have ended.
const extra = 64

// depth returns the largest number of frames to walk for a snapshot.
func depth(s *snap.Snapshot) int { return len(s.Frames) + extra }

// steps walks by at most most single steps, and saves each frame's registers. Then it walks the same
// stack in one call, which must agree.
func steps(u unwind.Walker, most int, regs context.Registers,
	mem *memory.Window) (st *stack, saved []context.Registers) {
	whole, bounds := regs, unwind.Bounds{Guess: true, MaxSteps: most}
	at := unwind.Interrupted(&regs)
	st = &stack{stop: unwind.BufferFull, walked: make([]unwind.Frame, most)}
	for len(st.frames) < most {
		saved = append(saved, regs)
		var f unwind.Frame
		stop := u.Step(&at, mem, &bounds, &f)
		st.frames = append(st.frames, f)
		if stop != unwind.StopNone {
			st.stop = stop
			break
		}
	}
	at = unwind.Interrupted(&whole)
	r := u.Walk(&at, mem, &bounds, st.walked)
	st.walked = st.walked[:r.N]
	st.disagreement(r.Stop, whole.Equal(&regs))
	return st, saved
}

// newAMD64Walker returns a walker that keeps one unwinder for all stacks of a program, like a profiler.
func newAMD64Walker() walker {
	u := managed.NewWalker(context.ArchAMD64)
	return func(s *snap.Snapshot, tab *module.Table, mem *memory.Window) (*stack, error) {
		regs, err := s.AMD64()
		if err != nil {
			return nil, err
		}
		u.SetTable(tab)
		st, saved := steps(u, depth(s), context.FromAMD64(regs), mem)
		st.value = func(i int, name string) (uint64, bool) {
			n := snap.AMD64Index(name)
			if n < 0 {
				return 0, false
			}
			r := &saved[i].AMD64
			return r.GPR[n], r.Known>>n&1 != 0
		}
		return st, nil
	}
}

func newARM64Walker() walker {
	u := managed.NewWalker(context.ArchARM64)
	return func(s *snap.Snapshot, tab *module.Table, mem *memory.Window) (*stack, error) {
		regs, err := s.ARM64()
		if err != nil {
			return nil, err
		}
		u.SetTable(tab)
		st, saved := steps(u, depth(s), context.FromARM64(regs), mem)
		st.value = func(i int, name string) (uint64, bool) { return arm64Value(&saved[i].ARM64, name) }
		return st, nil
	}
}

// arm64Value reads a register by its name: x0-x30, d8-d15, sp, pc.
func arm64Value(r *context.ARM64, name string) (uint64, bool) {
	switch name {
	case "sp":
		return r.Sp, true
	case "pc":
		return r.PC, true
	case "":
		return 0, false
	}
	n, err := strconv.Atoi(name[1:])
	switch {
	case err != nil || n < 0:
		return 0, false
	case name[0] == 'x' && n <= 30:
		return r.X[n], r.Known>>n&1 != 0
	case name[0] == 'd' && n >= 8 && n <= 15:
		return r.D[n-8], r.Known>>(32+n-8)&1 != 0
	}
	return 0, false
}
