package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

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
