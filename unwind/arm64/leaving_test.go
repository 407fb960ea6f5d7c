package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A walk continues on another stack at a function that keeps its caller's stack
// pointer in x29.
func TestLeavesStack(t *testing.T) {
	record := []byte{0x80 | regFP, 2, 0x80 | regLR, 1}
	program := func(cfa ...byte) fn { return fn{Program: append(cfa, record...)} }
	table := makeTable(t, nil,
		fn{Program: []byte{0x0e, 16, 0x80 | regLR, 1}},
		program(0x0c, regFP, 16),
		program(0x0f, 2, cfi.DW_OP_breg0+regFP, 16),
		program(0x0c, regFP, 16, 0x10, 19, 2, cfi.DW_OP_plus_uconst, 8), // x19 at CFA + 8
		fn{Program: []byte{0x0e, 16, 0x16, regSP, 2, cfi.DW_OP_breg0 + regFP, 16, 0x10, regLR,
			2, cfi.DW_OP_breg0 + regFP, 8,
			0x10, regFP, 2, cfi.DW_OP_breg0 + regFP, 0}},
		program(0x12, regSP, 0x80, 0x80, 0x80, 1)) // def_cfa_sf: -Apart
	code := make([]byte, walktest.LeavingFns*fnSize)
	for i := range walktest.LeavingFns {
		binary.LittleEndian.PutUint32(code[i*fnSize+0x10-4:], 0x94000000) // bl
	}
	f := must.Get(elf.New(elfasm.Code(elfasm.ARM64, textLo, code), "code"))(t)
	m := *table.At(0)
	m.ELF, m.Image = f, nil
	l := walktest.Leaving{
		New: newCached, At: at, Managed: jitIP,
		Table: module.NewTable(1, []module.Module{m}, table.Managed()),
		Registers: func(pc, sp, fp uint64) context.Registers {
			r := start(pc, sp)
			r.X[regFP] = fp
			return context.FromARM64(r)
		},
	}
	l.Run(t)
}

// A walk does not leave the stack of a Windows function, even if its frame pointer points to
// another one.
func TestPEStaysOnItsStack(t *testing.T) {
	const other = testSP - 0x10_0000
	own, low := testStack().Hot(), memory.Run{Addr: other, Data: make([]byte, 64)}
	binary.LittleEndian.PutUint64(low.Data[8:], jitIP)
	mem, u, f := memory.New(own, low), unwinder(makeTable(t, nil)), unwind.Frame{}
	u.undo.compile()
	if o := u.undo.codes([]byte{0xe1, 0x81, 0xe4}); o != undone { // set_fp; save_fplr_x
		t.Fatal(o)
	}
	r, ok := u.undo.pack(0)
	for fp, want := range map[uint64]unwind.Stop{testSP: unwind.StopNone, other: unwind.NoProgress} {
		regs := testRegs()
		regs.X[regFP] = fp
		binary.LittleEndian.PutUint64(own.Data[testSP+8-own.Addr:], jitIP)
		_, stop := leaveOf(&regs, false, func(s *unwind.State) (bool, unwind.Stop) {
			return false, u.stepRare(&r, s, mem, &unbounded, &f)
		})
		expect.True(t, ok && stop == want, "frame pointer %#x: %v, want %v; packed %v", fp, stop, want, ok)
	}
}
