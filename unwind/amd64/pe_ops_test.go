package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// Every operation that has a name is undone by the interpreter, but those that
// describe no instruction of a prolog. Pushes are undone before it is asked.
func TestEveryOperationIsUndone(t *testing.T) {
	for op := peamd64.Op(0); op.String() != "op?"; op++ {
		if op == peamd64.UWOP_PUSH_NONVOL {
			continue
		}
		want := unwind.StopNone
		if op == peamd64.UWOP_EPILOG || op == peamd64.UWOP_SPARE_CODE {
			want = unwind.BadInfo
		}
		regs := peRegs(peFn)
		regs.Known = context.AMD64All
		s := peStep{regs: &regs, mem: peMemory()}
		s.res.Frame = peRSP
		if got := s.apply(&peamd64.Info{FrameReg: context.RBP}, &peamd64.Code{Op: op, Info: 1, Operand: 8}); got != want {
			t.Errorf("%v: %v, want %v", op, got, want)
		}
	}
}
