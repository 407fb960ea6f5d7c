package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// foreignIP is in code of another code generator, in no module and no managed range.
const foreignIP = 0x7a00_0000_0100

var foreign = []memory.Range{{Start: foreignIP - 0x100, End: foreignIP + 0x1000}}

// foreignStack is a stack of native code above two frames of JIT code above native code.
func foreignStack() (*stack, Registers) {
	s, r := newStack(), start(at(0), sp0)
	s.Set(sp0+8, foreignIP)
	r.GPR[context.RBP] = sp0 + 32
	s.Set(sp0+32, sp0+64)
	s.Set(sp0+40, foreignIP+0x200)
	s.Set(sp0+64, 0)
	s.Set(sp0+72, at(1))
	return s, r
}

// Foreign JIT code is left by its frame pointer even if guesses are not allowed. Its frames have
// their own kind, and the frames below them are doubtful.
func TestForeignJIT(t *testing.T) {
	u := lab.New(t, lab.Plain, lab.Last).(*Unwinder)
	u.SetTable(u.Table().WithJIT(foreign))
	u.flush()
	s, r := foreignStack()
	all, out := context.FromAMD64(r), make([]unwind.Frame, 8)
	state := unwind.Interrupted(&all)
	res := u.Walk(&state, s.Window(), &unwind.Bounds{Follow: true}, out)
	must.True(t, res.N == 4 && res.Stop == unwind.EndOfStack, "%d frames, %v", res.N, res.Stop)
	for i, want := range []struct {
		kind  unwind.Kind
		trust unwind.Trust
	}{{unwind.KindNative, unwind.TrustContext}, {unwind.KindJIT, unwind.TrustCFI},
		{unwind.KindJIT, unwind.TrustFramePointer}, {unwind.KindNative, unwind.TrustFramePointer}} {
		expect.True(t, out[i].Kind == want.kind && out[i].Trust == want.trust,
			"frame %d: %v by %v, want %v by %v", i, out[i].Kind, out[i].Trust, want.kind, want.trust)
	}
}

// Without the ranges, the walk ends where the code begins. A table that gains or loses them
// drops the rules of their addresses.
func TestForeignJITUnknown(t *testing.T) {
	u := lab.New(t, lab.Plain, lab.Last).(*Unwinder)
	known := makeTable(t, 2, lab.Plain, lab.Last)
	unknown := module.NewTable(3, []module.Module{*known.At(0)}, nil)
	for _, c := range []struct {
		table *module.Table
		n     int
		stop  unwind.Stop
	}{{unknown, 2, unwind.NoInfo}, {known.WithJIT(foreign), 4, unwind.EndOfStack},
		{module.NewTable(4, []module.Module{*known.At(0)}, nil), 2, unwind.NoInfo},
		{module.NewTable(5, []module.Module{*known.At(0)}, foreign).WithJIT(foreign), 1, unwind.Managed}} {
		u.SetTable(c.table)
		s, r := foreignStack()
		all, out := context.FromAMD64(r), make([]unwind.Frame, 8)
		state := unwind.Interrupted(&all)
		if res := u.Walk(&state, s.Window(), &unwind.Bounds{Follow: true}, out); res.N != c.n ||
			res.Stop != c.stop {
			t.Errorf("generation %d: %d frames, %v, want %d, %v",
				c.table.Generation(), res.N, res.Stop, c.n, c.stop)
		}
	}
}

// Code without unwind data of an image with V8 is left by its frame pointer too, of other images
// it is not.
func TestFramePointerImage(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		table := makeTable(t, 1, fn{Program: []byte{0x0e, 16}}, fn{Program: []byte{0x07, 16}})
		m := *table.At(0)
		m.FramePointers = keeps
		u, s := unwinder(module.NewTable(2, []module.Module{m}, nil)), newStack()
		r := start(at(2), sp0) // no row covers it
		r.GPR[context.RBP] = sp0 + 32
		s.Set(sp0+40, at(1))
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), &unwind.Bounds{Follow: true}, &f)
		if keeps && (stop != unwind.StopNone || u.trust != unwind.TrustFramePointer ||
			f.Kind != unwind.KindNative) || !keeps && stop != unwind.NoInfo {
			t.Errorf("keeps %v: %v by %v, %v", keeps, stop, u.trust, f.Kind)
		}
	}
}
