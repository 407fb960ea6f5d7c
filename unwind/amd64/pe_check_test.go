package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestCheckAndWalkAgree: a walk refuses unwind data that a check of the image finds
// malformed, but uses contradictory data, as Windows does.
func TestCheckAndWalkAgree(t *testing.T) {
	fn := peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: peInfo}
	short := peamd64.RuntimeFunction{Begin: peFn, End: peFn + 2, Unwind: peInfo}
	for _, c := range []struct {
		name string
		info []byte
		fn   peamd64.RuntimeFunction
		why  peamd64.Reason
		stop unwind.Stop
		sp   uint64 // of the caller, from ours
	}{
		{"sound", info(1, 0, 8, 0, 8, 0x42, 4, 0x50), fn, peamd64.OK, unwind.StopNone, 0x38},
		{"offsets go up", info(1, 0, 8, 0, 4, 0x42, 8, 0x50), fn, peamd64.BadOrder, unwind.StopNone, 0x38},
		{"offset past the prolog", info(1, 0, 7, 0, 8, 0x42), fn, peamd64.BadOrder, unwind.StopNone, 0x30},
		{"version 3", info(3, 0, 0, 0), fn, peamd64.Version3, unwind.Unsupported, 0},
		{"unknown version", info(4, 0, 0, 0), fn, peamd64.BadVersion, unwind.BadInfo, 0},
		{"reserved operation", info(1, 0, 8, 0, 8, 0x42, 4, 7), fn, peamd64.BadOpcode, unwind.BadInfo, 0},
		{"operand past the count", info(1, 0, 8, 0, 8, 1), fn, peamd64.BadOperand, unwind.BadInfo, 0},
		{"epilog of no bytes", info(2, 0, 0, 0, 0, 0x16, 0, 6), fn, peamd64.BadEpilog, unwind.StopNone, 8},
		{"epilog longer than the function", info(2, 0, 0, 0, 3, 0x16, 0, 6), short, peamd64.BadEpilog, unwind.StopNone, 8},
		{"epilog among prolog codes", info(2, 0, 8, 0, 8, 0x42, 3, 0x16), fn, peamd64.BadOpcode, unwind.BadInfo, 0},
		{"chained and with handler", append(info(1, 5, 0, 0), entries(peamd64.RuntimeFunction{Begin: peFn, End: peFn + 1, Unwind: peInfo + 0x20})...), fn, peamd64.BadFlags, unwind.StopNone, 8},
		{"chained to itself", chained(0, fn), fn, peamd64.ChainDepth, unwind.BadInfo, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := peImage(append(append(c.info, make([]byte, 0x20-len(c.info))...), 1, 0, 0, 0), nil)
			var fault *peamd64.Error
			why := peamd64.OK
			if errors.As(f.AMD64().Check(c.fn), &fault) {
				why = fault.Fault.Reason
			}
			if why != c.why {
				t.Fatalf("checked: %v, want %v", why, c.why)
			}
			r := peRegs(peFn + 0x80)
			_, stop := StepPE(f.AMD64(), unwind.Instruction(peFn+0x80), &r, peMemory())
			if refused := why != peamd64.OK && !why.Walkable(); stop != c.stop || (stop != unwind.StopNone) != refused {
				t.Errorf("stop %v; the check says %v, walkable %v", stop, why, why.Walkable())
			}
			if stop == unwind.StopNone && r.GPR[context.RSP] != peRSP+c.sp {
				t.Errorf("sp %#x, want %#x", r.GPR[context.RSP]-peRSP, c.sp)
			}
		})
	}
}
