package machine

import (
	"slices"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/image"
)

// Loop jumps back to the first call of the running function, as the end of a loop
// does. It returns false and changes nothing unless the thread is at that call, or
// after it in the body.
func (t *Thread) Loop() bool {
	if t.fn == nil || t.at < 0 {
		return false
	}
	for i := range t.at + 1 {
		if i == len(t.fn.Ops) {
			break
		}
		if !hasCall(&t.fn.Ops[i]) {
			continue
		}
		if !t.unchanged(i, t.at) {
			return false
		}
		t.at = i
		t.state.PC = t.image.Base + uint64(t.fn.RVA) + uint64(t.fn.Ops[i].Off)
		return true
	}
	return false
}

// unchanged reports whether the ops [i, j) change no register on which the frame's row depends.
func (t *Thread) unchanged(i, j int) bool {
	for ; i < j; i++ {
		if op := &t.fn.Ops[i]; !hasCall(op) && (op.Part != image.Body || len(op.Effects) != 0) {
			return false
		}
	}
	return true
}

func hasCall(op *image.Op) bool {
	return slices.ContainsFunc(op.Effects, func(e image.Effect) bool { return e.Kind == image.Call })
}

// Bounds returns the range of the thread's stack, without the signal stack.
func (t *Thread) Bounds() (low, high uint64) {
	return t.stack.low, t.stack.low + uint64(len(t.stack.mem))
}

// FromAMD64 converts registers of the walker to a state. Registers that r does not have are 0.
func FromAMD64(r *context.AMD64) State {
	s := State{PC: r.RIP}
	copy(s.R[:], r.GPR[:])
	for i := range r.XMM {
		s.V[6+i] = r.XMM[i]
	}
	return s
}

// FromARM64 converts registers of the walker to a state. Registers that r does not have are 0.
func FromARM64(r *context.ARM64) State {
	s := State{PC: r.PC}
	copy(s.R[:], r.X[:])
	s.R[31] = r.Sp
	for i := range r.D {
		s.V[8+i][0] = r.D[i]
	}
	return s
}
