package amd64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A walk continues on another stack at a function that keeps its caller's stack
// pointer in RBP: rustc's stacker, gcc's -fsplit-stack.
func TestLeavesStack(t *testing.T) {
	sp := cat([]byte{0x12, dwarfRSP}, binary.AppendUvarint(nil, walktest.Apart/8)) // def_cfa_sf: -Apart
	table := makeTable(t, 1,
		fn{Program: []byte{0x0e, 16}},
		fn{Program: []byte{0x0c, dwarfRBP, 16, 0x80 | dwarfRBP, 2}},
		fn{Program: []byte{0x0f, 2, cfi.DW_OP_breg0 + dwarfRBP, 16, 0x80 | dwarfRBP, 2}},
		fn{Program: []byte{0x0c, dwarfRBP, 16, 0x80 | dwarfRBP, 2, 0x10, 3,
			2, cfi.DW_OP_plus_uconst, 8}}, // rbx at CFA + 8
		fn{Program: []byte{0x0e, 16, 0x16, dwarfRSP, 2, cfi.DW_OP_breg0 + dwarfRBP, 16, 0x10, dwarfRA, 2,
			cfi.DW_OP_breg0 + dwarfRBP, 8,
			0x10, dwarfRBP, 2, cfi.DW_OP_breg0 + dwarfRBP, 0}},
		fn{Program: sp})
	code := bytes.Repeat([]byte{0x90}, walktest.LeavingFns*fnSize)
	for i := range walktest.LeavingFns {
		code[i*fnSize+0x10-5] = 0xe8
	}
	f := must.Get(elf.New(elfasm.Code(elfasm.AMD64, textLo, code), "code"))(t)
	m := *table.At(0)
	m.ELF, m.Image = f, nil
	l := walktest.Leaving{
		New: newCached, At: at, Managed: jitIP,
		Table: module.NewTable(1, []module.Module{m}, table.Managed()),
		Registers: func(ip, sp, fp uint64) context.Registers {
			r := start(ip, sp)
			r.GPR[context.RBP] = fp
			return context.FromAMD64(r)
		},
	}
	l.Run(t)
}
