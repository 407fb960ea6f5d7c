package arm64

import (
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
