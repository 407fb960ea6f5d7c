package walktest

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// ownRegisters are those of one architecture.
type ownRegisters interface{ context.AMD64 | context.ARM64 }

// StateOf is a frame in a copy of registers r.
func StateOf[R ownRegisters](r *R, exact bool) unwind.State {
	regs := new(context.Registers)
	switch r := any(r).(type) {
	case *context.AMD64:
		*regs = context.FromAMD64(*r)
	case *context.ARM64:
		*regs = context.FromARM64(*r)
	}
	return unwind.State{Regs: regs, Exact: exact, Trust: unwind.TrustContext}
}

// take leaves the registers of a frame in r.
func take[R ownRegisters](r *R, s *unwind.State) {
	switch r := any(r).(type) {
	case *context.AMD64:
		*r = s.Regs.AMD64
	case *context.ARM64:
		*r = s.Regs.ARM64
	}
}

// Step makes a step from r and leaves the caller in r.
func Step[R ownRegisters](u unwind.Walker, r *R, exact bool, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	s := StateOf(r, exact)
	stop := u.Step(&s, mem, b, f)
	take(r, &s)
	return s.Exact, stop
}

// Walk walks from r, found by trust, and leaves the frame where the walk stopped in r.
func Walk[R ownRegisters](u unwind.Walker, r *R, exact bool, trust unwind.Trust, mem *memory.Window,
	b *unwind.Bounds, out []unwind.Frame) (int, bool, unwind.Stop) {
	s := StateOf(r, exact)
	s.Trust = trust
	res := u.Walk(&s, mem, b, out)
	take(r, &s)
	return res.N, s.Exact, res.Stop
}

// FewFusedSteps: if a rule started only few fused steps, the walker leaves its frame by a single step the
// next time. There are two exceptions: there was no room for more frames, or rules were missing.
func (l *Lab) FewFusedSteps(t *testing.T, few int, noted func(w Walker) bool) {
	for _, c := range []struct {
		name         string
		frames, room int
		walks        int
		want, edge   bool
	}{
		{"as few as that", few, 10, 2, true, false},
		{"more", few + 1, 10, 3, false, false},
		{"no room for more", few + 1, few, 3, false, false},
		{"rules not made yet", few + 1, 10, 1, false, false},
		{"where the memory begins", few, 10, 2, l.arm64(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := l.Deep(t, c.frames)
			mem := s.Window()
			if c.edge {
				mem = memory.New(memory.Run{Addr: SP0, Data: s.Data[SP0-StackLow:]})
			}
			from := func() *unwind.State {
				r := l.Start(At(0), SP0)
				s := unwind.Interrupted(&r)
				return &s
			}
			var f unwind.Frame
			w.Step(from(), mem, nil, &f) // makes the rule that is asked for
			for range c.walks {
				w.Walk(from(), mem, nil, make([]unwind.Frame, c.room))
			}
			expect.Equal(t, noted(w), c.want, "noted")
		})
	}
}
