package walk

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Managed code has called a function that is newer than the module table and has saved a register with an
// address in managed code. If the runtime's stub is known, the function's return address does not count as
// the stub.
func TestNewerCode(t *testing.T) {
	const image, jit, newer, stack, stub = 0x1000_0000, 0x9000_0000, 0x9100_0000, 0x7000, 0x1000_0800
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, 0x100, 0x40, 0x0e, 16) // DW_CFA_def_cfa_offset: it has pushed a register
	table, err := cfi.Load(cfi.Sections{Arch: context.ArchAMD64, EHFrame: frames.Bytes(), EHFrameAddr: 0x100000})
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, word := range []uint64{jit + 0x10, newer, 0, 0} {
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	for _, c := range []struct {
		name       string
		stub, want uint64
	}{
		{"a stub that is not known", 0, jit + 0x10},
		{"one that is", stub, newer},
	} {
		w := New(context.ArchAMD64)
		w.Unmanaged.SetTable(module.NewTable(1, []module.Module{{Start: image, End: image + 0x1000, Bias: image, CFI: table}},
			[]memory.Range{{Start: jit, End: jit + 0x1000}}))
		w.SetHijackStub(c.stub)
		w.mem.Reset(stack, data)
		w.Regs = context.FromAMD64(context.AMD64{RIP: image + 0x110, Known: context.AMD64All})
		w.Regs.AMD64.GPR[context.RSP] = stack
		w.at = unwind.Interrupted(&w.Regs)
		if w.native(&Capture{}); w.n == 0 || w.out[0].IP != image+0x110 || w.HijackStub != c.stub || w.Regs.IP() != c.want && w.out[1].IP != c.want {
			t.Errorf("%s: %d frames, to %#x", c.name, w.n, w.Regs.IP())
		}
	}
}
