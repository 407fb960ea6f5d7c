package amd64

import (
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// TestPackBounds: what fits a rule's bits, and what is one too large for them.
func TestPackBounds(t *testing.T) {
	row := func(cfa, ra, rbx int64) *cfi.Row {
		var r cfi.Row
		r.FDE.RA = dwarfRA
		r.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: cfa}
		r.Regs[dwarfRA] = cfi.Rule{Kind: cfi.Offset, Off: ra}
		r.Regs[dwarfRBX] = cfi.Rule{Kind: cfi.Offset, Off: rbx}
		r.Used[0] = 1<<dwarfRA | 1<<dwarfRBX
		return &r
	}
	const largest = maxOffset << 3
	for _, c := range []struct {
		name string
		row  *cfi.Row
		ok   bool
	}{
		{"plain", row(32, -8, -16), true},
		{"the farthest slot", row(256, -8, -8*maxSlot), true},
		{"one farther", row(256, -8, -8*(maxSlot+1)), false},
		{"between words", row(256, -8, -20), false},
		{"above the CFA", row(256, -8, 8), false},
		{"the largest frame", row(largest, -8, -16), true},
		{"one larger", row(largest+8, -8, -16), false},
		{"a CFA between words", row(36, -8, -16), false},
		{"a return address elsewhere", row(32, -16, -24), false},
	} {
		r, ok := pack(c.row, 3)
		expect.Equal(t, ok, c.ok, "%s: fits", c.name)
		if ok && (r.offset() != uint64(c.row.CFA.Off) || r.slots() != uint64(-c.row.Regs[dwarfRBX].Off/8) ||
			r.Module() != 3) {
			t.Errorf("%s: offset %d, slots %#x, module %d", c.name, r.offset(), r.slots(), r.Module())
		}
	}
}

// DWARF register numbers are Delve's.
func TestDWARFNumbers(t *testing.T) {
	for d, n := range fromDWARF {
		got, want := snap.AMD64Names[n], strings.ToLower(regnum.AMD64ToName(uint64(d)))
		expect.True(t, got == want, "%d: %s, Delve says %s", d, got, want)
	}
	for got, want := range map[int]int{dwarfRBX: regnum.AMD64_Rbx, dwarfRBP: regnum.AMD64_Rbp,
		dwarfRSP: regnum.AMD64_Rsp, dwarfR12: regnum.AMD64_R12, dwarfRA: regnum.AMD64_Rip} {
		expect.Equal(t, got, want, "Delve says")
	}
}
