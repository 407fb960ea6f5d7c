package sim_test

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// called is r's capture an instant later: the method on top has called the
// function name, which stands at its first instruction, or has pushed so many
// bytes and not changed the frame pointer yet.
func called(r *recorded, name string, bytes uint64) clr.Capture {
	im, f := r.w.Kit.Lookup(name)
	entry, c := im.Base+uint64(f.RVA), r.capture
	by, regs := bytes, &c.Regs
	if r.w.Arch == image.AMD64 {
		by += 8
	}
	stack := append(make([]byte, by), r.capture.Stack.Data...)
	if by > bytes {
		binary.LittleEndian.PutUint64(stack[bytes:], regs.IP())
	}
	c.Stack = memory.Run{Addr: c.Stack.Addr - by, Data: stack}
	regs.ReturnTo(regs.IP()) // to the link register, where there is one
	regs.SetIP(entry)
	regs.SetSP(regs.SP() - by)
	return c
}

// hijacked is r's capture after a call of a hidden method, in whose frame record
// the CLR has replaced the return address.
func hijacked(r *recorded) clr.Capture {
	c := called(r, sim.HiddenMethod(0), 0)
	const by = 48 // 32 of its own, the frame record
	stack := append(make([]byte, by), r.capture.Stack.Data...)
	fp := c.Regs.FP()
	binary.LittleEndian.PutUint64(stack[32:], fp)
	binary.LittleEndian.PutUint64(stack[40:], r.w.CLR.HijackStub)
	c.Stack = memory.Run{Addr: r.capture.Stack.Addr - by, Data: stack}
	c.Regs.SetIP(c.Regs.IP() + 12)
	c.Regs.SetSP(c.Stack.Addr)
	c.Regs.SetFP(c.Stack.Addr + 32)
	return c
}

// Code that the CLR does not report, interrupted before it has a frame: its
// caller is the next frame, and no guess is needed.
func TestNoFrameYet(t *testing.T) {
	tl := newTools()
	was, out := make([]merge.Frame, 512), make([]merge.Frame, 512)
	for _, k := range []struct {
		name, in string
		bytes    uint64
	}{
		{"a hidden method at its entry", sim.HiddenMethod(0), 0},
		{"a stub at its entry", sim.ILStub(0), 0},
		{"a stub in its prolog", sim.ILStub(0), 32},
		{"a hidden method whose return address is replaced", "", 0},
	} {
		t.Run(k.name, func(t *testing.T) {
			both(t, func(r *recorded) bool {
				kind, _ := r.w.CLR.Codes.At(r.truth[0].State.PC)
				return kind == vm.Method && len(r.capture.Frames) > 0
			}, func(t *testing.T, r *recorded) {
				_, m := tl.use(r)
				want := m.Merge(&r.capture, was)
				if !want.Complete() || want.Hidden != 0 {
					return
				}
				var c clr.Capture
				if k.in == "" {
					c = hijacked(r)
				} else {
					c = called(r, k.in, k.bytes)
				}
				got := m.Merge(&c, out)
				if got.N != want.N+1 || got.Gap != want.Gap || got.Doubtful != want.Doubtful || got.Managed != want.Managed {
					t.Fatalf("%v: %+v, not one frame more than %+v", r.w.Variant, got, want)
				}
				for i := range was[:want.N] {
					if a, b := &was[i], &out[i+1]; a.Function != b.Function || a.SP != b.SP {
						t.Fatalf("frame %d is %+v, not %+v", i, b, a)
					}
				}
			})
		})
	}
}
