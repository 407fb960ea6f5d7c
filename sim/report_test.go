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
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Where a method has an inlined P/Invoke the CLR reports the registers of its
// prolog, not those of the call: a frame is known by its method and by one of
// its SP and its frame pointer. Source: an InlinedCallFrame's registers; seen on
// .NET 9 and 10.
func TestReportDiffers(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	for name, change := range map[string]func(f, below *clr.SnapshotFrame){
		"another ip":       func(f, _ *clr.SnapshotFrame) { f.IP += 4 },
		"no frame pointer": func(f, _ *clr.SnapshotFrame) { f.FP = 0 },
		"another sp": func(f, below *clr.SnapshotFrame) {
			// Above what was allocated since, in a frame that has a frame pointer.
			if f.FP >= f.SP+8 && below.FP != f.FP {
				f.SP += 8
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(r *recorded) bool { return len(r.capture.Frames) > 0 && r.top() >= 0 },
				func(t *testing.T, r *recorded) {
					_, m := tl.use(r)
					want := m.Merge(&r.capture, out)
					if want.Hidden != 0 || !want.Complete() {
						return
					}
					c := r.capture
					c.Frames = append([]clr.SnapshotFrame(nil), c.Frames...)
					for i := range c.Frames[:len(c.Frames)-1] {
						if f := &c.Frames[i]; !f.Marker() && (i == 0 || c.Frames[i-1].Marker()) {
							change(f, &c.Frames[i+1])
						}
					}
					must.Equal(t, m.Merge(&c, out), want)
				})
		})
	}
}

// A report that lacks a frame whose caller is another frame of the same method: a
// frame is known by its stack too, or one is lost where nothing says so.
func TestRecursionUnreported(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	both(t, func(r *recorded) bool {
		f := r.capture.Frames
		if len(f) < 3 || r.top() < 0 || r.capture.Result != clr.S_OK || f[0].Marker() ||
			f[0].SP != r.truth[r.top()].State.R[r.w.Arch.SP()] {
			return false
		}
		return !f[1].Marker() && f[1].FP != f[0].FP
	}, func(t *testing.T, r *recorded) {
		_, m := tl.use(r)
		c := r.capture
		c.Frames = append([]clr.SnapshotFrame(nil), c.Frames[1:]...)
		// The caller of the frame on top becomes another activation of its method.
		first, caller := r.capture.Frames[0], &c.Frames[0]
		was := caller.Function
		caller.Function = first.Function
		res := m.Merge(&c, out)
		for i := range out[:res.N] {
			f := &out[i]
			if f.Function != first.Function || f.SP != caller.SP {
				continue
			}
			return // the caller is there
		}
		must.True(t, !res.Complete(),
			"the frame of %#x at sp %#x is lost, and no gap says so: %+v", was, caller.SP, res)
	})
}

// called returns r's capture at a moment shortly afterwards. The method on top has called the
// function name. That function is at its first instruction, and has pushed bytes bytes. It has
// not changed the frame pointer yet.
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
				must.True(t, got.N == want.N+1 && got.Gap == want.Gap && got.Doubtful == want.Doubtful &&
					got.Managed == want.Managed,
					"%v: %+v, not one frame more than %+v", r.w.Variant, got, want)
				for i := range was[:want.N] {
					if a, b := &was[i], &out[i+1]; a.Function != b.Function || a.SP != b.SP {
						t.Fatalf("frame %d is %+v, not %+v", i, b, a)
					}
				}
			})
		})
	}
}
