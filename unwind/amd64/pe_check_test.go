package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
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

// An image without an exception directory: an interrupted ip in it is no leaf
// that anything proves, but its code may be followed.
func TestPEWithoutExceptionDirectory(t *testing.T) {
	code := []byte{0x57, 0x90, 0x5f, 0xc3, 0xe8, 0, 0, 0, 0} // push rdi; nop; pop rdi; ret; call
	f := pe.FromBlocks(pe.MachineAMD64, nil, []pe.Block{{RVA: 0x1000, Data: code}})
	m := module.PEFromFile(1, f, "bare.dll", textBias, textBias+0x2000)
	u := unwinder(module.NewTable(1, []module.Module{m}, nil))
	for _, c := range []struct {
		b    unwind.Bounds
		stop unwind.Stop
	}{{unwind.Bounds{}, unwind.NoInfo}, {unwind.Bounds{Follow: true}, unwind.StopNone}} {
		r, s := start(textBias+0x1001, sp0), newStack()
		s.set(sp0, 0x33)
		s.set(sp0+8, textBias+0x1009)
		var frame unwind.Frame
		if _, stop := stepOf(u, &r, true, s.window(), &c.b, &frame); stop != c.stop {
			t.Errorf("%v, want %v", stop, c.stop)
		}
		if c.stop == unwind.StopNone && (r.RIP != textBias+0x1009 || r.SP() != sp0+16 || u.by != unwind.TrustCode ||
			!known(&r, context.RDI) || r.GPR[context.RDI] != 0x33) {
			t.Errorf("at %#x/%#x, rdi %#x, by %v", r.RIP, r.SP(), r.GPR[context.RDI], u.by)
		}
	}
}

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
