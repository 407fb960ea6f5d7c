package snapshot

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// oneStep is a walker that leaves one frame. It takes the word at the stack pointer for the return address.
type oneStep struct {
	unwind.Walker
	bounds unwind.Bounds // of the last walk
}

func (w *oneStep) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	_ []unwind.Frame) unwind.Result {
	w.bounds = *b
	caller, _ := mem.Word(s.Regs.SP())
	s.Regs.SetIP(caller)
	s.Regs.AMD64.GPR[4] += 8
	return unwind.Result{N: 1, Stop: unwind.Managed}
}

// A seed comes from the stack of its own capture and the bounds of its own thread. The captured registers
// stay.
func TestSeeder(t *testing.T) {
	const stub = 0x7000
	var w oneStep
	var p managed.Specials
	p.Redirect.Add(memory.Range{Start: stub, End: stub + 16})
	s := NewSeeder(&w, nil)
	for _, c := range []struct{ ip, sp, caller uint64 }{
		{0x1000, 0x10000, 0x5000}, {0x1100, 0x20000, 0x6000},
	} {
		var k clr.Capture
		k.Regs.Arch = context.ArchAMD64
		k.Regs.AMD64.RIP, k.Regs.AMD64.GPR[4] = c.ip, c.sp
		k.Thread.StackLow, k.Thread.StackHigh = c.sp, c.sp+0x100
		k.Stack = memory.Run{Addr: c.sp, Data: []byte{1: byte(c.caller >> 8), 15: 0}}
		s.Seed(&k)
		expect.True(t, k.Seed.IP() == c.caller && k.Seed.SP() == c.sp+8,
			"seed %#x, sp %#x", k.Seed.IP(), k.Seed.SP())
		expect.True(t, k.Regs.IP() == c.ip && k.Regs.SP() == c.sp, "the capture is at %#x", k.Regs.IP())
		expect.Equal(t, w.bounds, unwind.Bounds{Low: c.sp, High: c.sp + 0x100}, "bounds")
	}
	s.SetSpecials(&p)
	var k clr.Capture
	k.Regs.Arch = context.ArchAMD64
	k.Regs.AMD64.RIP = stub
	expect.Equal(t, s.Seed(&k), seed.StubOnTop, "in a stub")
}
