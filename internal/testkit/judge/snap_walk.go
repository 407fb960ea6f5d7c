package judge

import (
	"strconv"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/testkit/snap"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// extra is how many frames a walk may have more than the truth: enough to see
// that it does not end where it should.
const extra = 64

// depth is how many frames of a snapshot are walked, however deep its stack is.
func depth(s *snap.Snapshot) int { return len(s.Frames) + extra }

// steps walks by at most most single steps and calls save with each frame before
// it is left.
func steps(most int, step func(exact bool, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop), trusted func() unwind.Trust, save func()) ([]unwind.Frame, unwind.Stop) {
	exact, trust := true, unwind.TrustContext
	bounds := unwind.Bounds{Guess: true, MaxSteps: most}
	var out []unwind.Frame
	for len(out) < most {
		save()
		f := unwind.Frame{Trust: trust}
		caller, stop := step(exact, &bounds, &f)
		out = append(out, f)
		if stop != unwind.StopNone {
			return out, stop
		}
		exact = caller
		trust = trust.Then(trusted())
	}
	return out, unwind.BufferFull
}

// newAMD64Walker keeps one unwinder for a program, as a profiler does.
func newAMD64Walker() walker {
	u := managed.NewAMD64()
	return func(s *snap.Snapshot, tab *module.Table, mem *memory.Window) (*stack, error) {
		regs, err := s.AMD64()
		if err != nil {
			return nil, err
		}
		u.SetTable(tab)
		var saved []context.AMD64
		st, whole := &stack{}, regs
		st.frames, st.stop = steps(depth(s), func(exact bool, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
			return u.Step(&regs, exact, mem, b, f)
		}, u.StepTrust, func() { saved = append(saved, regs) })
		st.walked = make([]unwind.Frame, depth(s))
		n, _, stop := u.Walk(&whole, true, unwind.TrustContext, mem, &unwind.Bounds{Guess: true, MaxSteps: depth(s)}, st.walked)
		st.walked = st.walked[:n]
		st.disagreement(stop, whole == regs)
		st.value = func(i int, name string) (uint64, bool) {
			n := snap.AMD64Index(name)
			if n < 0 {
				return 0, false
			}
			return saved[i].GPR[n], saved[i].Known>>n&1 != 0
		}
		return st, nil
	}
}

func newARM64Walker() walker {
	u := managed.NewARM64()
	return func(s *snap.Snapshot, tab *module.Table, mem *memory.Window) (*stack, error) {
		regs, err := s.ARM64()
		if err != nil {
			return nil, err
		}
		u.SetTable(tab)
		var saved []context.ARM64
		st, whole := &stack{}, regs
		st.frames, st.stop = steps(depth(s), func(exact bool, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
			return u.Step(&regs, exact, mem, b, f)
		}, u.StepTrust, func() { saved = append(saved, regs) })
		st.walked = make([]unwind.Frame, depth(s))
		n, _, stop := u.Walk(&whole, true, unwind.TrustContext, mem, &unwind.Bounds{Guess: true, MaxSteps: depth(s)}, st.walked)
		st.walked = st.walked[:n]
		st.disagreement(stop, whole == regs)
		st.value = func(i int, name string) (uint64, bool) { return arm64Value(&saved[i], name) }
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
