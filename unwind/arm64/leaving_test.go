package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/testkit/elfasm"
	"github.com/seedwalk/seedwalk/internal/testkit/walktest"
	"github.com/seedwalk/seedwalk/module"
)

// A walk goes from one stack to another where a function keeps its caller's stack
// pointer in x29.
func TestLeavesStack(t *testing.T) {
	record := []byte{0x80 | regFP, 2, 0x80 | regLR, 1}
	program := func(cfa ...byte) fn { return fn{program: append(cfa, record...)} }
	table := makeTable(t, nil,
		fn{program: []byte{0x0e, 16, 0x80 | regLR, 1}},
		program(0x0c, regFP, 16),
		program(0x0f, 2, cfi.DW_OP_breg0+regFP, 16),
		program(0x12, regSP, 0x80, 0x80, 0x80, 1)) // def_cfa_sf: -Apart
	code := make([]byte, walktest.LeavingFns*fnSize)
	for i := range walktest.LeavingFns {
		binary.LittleEndian.PutUint32(code[i*fnSize+0x10-4:], 0x94000000) // bl
	}
	f, err := elf.New(elfasm.Code(elfasm.ARM64, textLo, code), "code")
	if err != nil {
		t.Fatal(err)
	}
	m := *table.At(0)
	m.ELF, m.Image = f, nil
	l := walktest.Leaving{
		New: newCached, At: at, Managed: jitIP, Table: module.NewTable(1, []module.Module{m}, table.Managed()),
		Registers: func(pc, sp, fp uint64) context.Registers {
			r := start(pc, sp)
			r.X[regFP] = fp
			return context.FromARM64(r)
		},
	}
	l.Run(t)
}
