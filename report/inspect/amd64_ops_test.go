package inspect

import (
	"testing"

	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// Every operation that has a name has an effect that is printed, but those that
// describe no instruction of a prolog.
func TestEveryOperationHasAnEffect(t *testing.T) {
	for op := peamd64.Op(0); op.String() != "op?"; op++ {
		want := op != peamd64.UWOP_EPILOG && op != peamd64.UWOP_SPARE_CODE
		e := amd64Effect{base: "rsp"}
		if got := e.undo(&peamd64.Info{FrameReg: 5}, &peamd64.Code{Op: op, Operand: 8}); got != want {
			t.Errorf("%v: %v, want %v", op, got, want)
		}
	}
}
