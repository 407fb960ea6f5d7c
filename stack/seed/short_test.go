package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A function with a frame pointer and 48 bytes of stack, without what it allocates later.
var withPointer = map[context.Arch]struct {
	machine      uint16
	entry, codes []byte
}{
	context.ArchAMD64: {pe.MachineAMD64, []byte{0, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0},
		[]byte{1, 8, 3, 5, 8, 3, 5, 0x32, 1, 0x50, 0, 0}}, // push rbp; sub rsp, 32; mov rbp, rsp
	context.ArchARM64: {pe.MachineARM64, []byte{0, 0, 0, 0, 0x80, 0, 0, 0},
		[]byte{0x20, 0, 0x20, 8, 2, 0xe1, 0x81, 0xe4}}, // stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, #32
}

// TestShortFrame checks frames whose size contradicts the prolog, though the frame pointer finds the caller.
func TestShortFrame(t *testing.T) {
	for _, a := range context.Arches {
		for _, c := range []struct {
			ip, size uint64
			want     bool
		}{
			{callAt, 48, true},
			{callAt, 4096, true}, // the function has allocated memory
			{callAt, 40, false},
			{8, 0, true}, // in the prolog
		} {
			f := withPointer[a]
			code := make([]byte, 0x80)
			copy(code[callAt-5:], callOf[a])
			copy(code[8-5:], callOf[a])
			x := newScene(a)
			x.u.SetTable(module.NewTable(1, []module.Module{{
				Start: nativeAt, End: nativeAt + 0x100, Bias: nativeAt,
				PE: pe.FromBlocks(f.machine, f.entry, []pe.Block{{Data: code}, {RVA: 0x80, Data: f.codes}})}},
				[]memory.Range{{Start: methodAt - 0x1000, End: methodAt + 0x1000}}))
			x.frames = []unwind.Frame{{IP: nativeAt + 8, SP: sp - 64, Exact: true}, frameAt(c.ip)}
			x.frames[1].CFA = x.frames[1].SP + c.size
			expect.Equal(t, x.confirmed(), c.want, "%v, %d bytes at %#x", a, c.size, c.ip)
			expect.True(t, x.info.Codes == nil, "%v: the unwind data are kept", a)
		}
	}
}
