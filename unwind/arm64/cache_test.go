package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Four addresses with the same place in the cache are kept side by side; a fifth
// replaces only one of them.
func TestCacheWays(t *testing.T) {
	u := New()
	look := func(k uint64) uint64 { return k << 30 }
	kept := func(n uint64) (found int) {
		for k := uint64(1); k <= n; k++ {
			for i := range u.cache {
				if e := &u.cache[i]; e.addr == look(k) && e.rule.kind != RuleNone {
					found++
				}
			}
		}
		return found
	}
	for round := range 3 {
		for k := uint64(1); k <= ways; k++ {
			u.lookup(unwind.Instruction(look(k)))
		}
		n := kept(ways)
		expect.True(t, n == ways, "round %d: %d of %d kept", round, n, ways)
	}
	for k := uint64(ways + 1); k < 20; k++ {
		u.lookup(unwind.Instruction(look(k)))
		expect.Equal(t, kept(k), ways, "kept of %d", k)
	}
}

// If only managed code was added or removed, the rules of native code stay, and those of
// managed code follow the table.
func TestSetTableKeepsRules(t *testing.T) {
	table := makeTable(t, nil, fn{Program: []byte{0x0e, 16}}, fn{})
	u, native := unwinder(table), table.At(0)
	kept := func() (n int) {
		for i := range u.cache {
			if u.cache[i].rule.kind != RuleNone {
				n++
			}
		}
		return n
	}
	look := func(ip uint64) *Rule { return u.lookup(unwind.Instruction(ip)) }
	set := func(gen uint32, managed ...memory.Range) {
		u.SetTable(module.NewTable(gen, []module.Module{*native}, managed))
	}
	look(at(0))
	look(jitHi + 8)
	must.True(t, look(jitIP).Managed() && !look(jitHi+8).Managed() && kept() == 3, "%d kept", kept())
	set(2, memory.Range{Start: jitHi, End: jitHi + 16})
	expect.True(t, kept() == 1, "%d kept, want that of the module", kept())
	expect.True(t, !look(jitIP).Managed() && look(jitHi+8).Managed(), "rules of the table before")
	set(3, memory.Range{Start: at(0), End: at(1)})
	expect.True(t, look(at(0)).Managed(), "managed code in a module's range")
	native.ID++
	set(4)
	expect.Equal(t, kept(), 0, "kept of another module")
}

// After Drop, nothing of the last walk is kept.
func TestDrop(t *testing.T) {
	u := New()
	u.section.hot, u.section.out = memory.Run{Data: make([]byte, 8)}, make([]unwind.Frame, 1)
	u.Drop()
	expect.True(t, u.section.hot.Data == nil && u.section.out == nil, "%+v", &u.section)
}

// TestSetSlotBounds: what fits a rule's 16 bits, in words.
func TestSetSlotBounds(t *testing.T) {
	for off, want := range map[int64]bool{0: true, -8: true, 4: false, -32768 * 8: true, -32769 * 8: false,
		32766 * 8: true, 32767 * 8: false} {
		r := makeRule(RuleSlots, 0)
		if r.setSlot(3, off) != want {
			t.Errorf("%d: fits %v", off, !want)
		} else if want && r.slotAt(3, 1<<40) != uint64(1<<40+off) {
			t.Errorf("%d: at %#x", off, r.slotAt(3, 1<<40))
		}
	}
}

// TestContextCode: a whole CONTEXT on the stack gives sp and pc, each from its own
// place.
func TestContextCode(t *testing.T) {
	const sp = 0x7000_0000
	data := make([]byte, 0x400)
	for i := 0; i < len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(0x1000+i))
	}
	var u undo
	regs := Registers{Sp: sp}
	u.execute(&regs, memory.New(memory.Run{Addr: sp, Data: data}))
	if o := u.codes([]byte{0xea, 0xe4}); o != undone || u.regs.Sp != 0x1100 || u.regs.PC != 0x1108 ||
		u.regs.X[19] != 0x1000+8+8*19 || u.regs.D[0] != 0x1110+16*8 || !u.exact {
		t.Errorf("%v: %+v, exact %v", o, u.regs, u.exact)
	}
}
