package amd64

import (
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
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

// Rules that no longer hold are dropped: those made before the return hooks were known, and all of them if
// the cache is disabled.
func TestCacheDropped(t *testing.T) {
	for name, drop := range map[string]func(u *Unwinder){
		"return hooks": func(u *Unwinder) { u.SetReturnHooks(nil) },
		"disabled":     func(u *Unwinder) { u.DisableCache(true) },
	} {
		u := New()
		u.lookup(unwind.Instruction(0x1000))
		drop(u)
		expect.Equal(t, u.kept(0x1000).bits, 0, "%s: a rule is kept", name)
	}
}

// TestAmendKeepsEmptyEntries: empty entries look like address 0's, whose rule may not be in the cache.
func TestAmendKeepsEmptyEntries(t *testing.T) {
	u := New()
	u.amend(unwind.ReturnAddress(1), makeRule(RuleNoInfo, 0), seenBit)
	expect.True(t, u.kept(0).bits == 0, "address 0 has rule %#x", u.kept(0).bits)
}

// After Drop, nothing of the last walk is kept.
func TestDrop(t *testing.T) {
	u := New()
	u.section.hot, u.section.out = memory.Run{Data: make([]byte, 8)}, make([]unwind.Frame, 1)
	u.Drop()
	expect.True(t, u.section.hot.Data == nil && u.section.out == nil, "%+v", &u.section)
}
