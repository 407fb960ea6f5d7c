package walktest

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Cache is what the tests have to know of a walker's cache of rules.
type Cache struct {
	Ways  int    // entries of one place
	Apart uint64 // distance of addresses with the same place
	// Look finds or makes the rule of an interrupted ip. It reports whether the ip is in managed code.
	Look func(w Walker, ip uint64) (managed bool)
	// Kept returns the addresses with a rule.
	Kept func(w Walker) []uint64
}

// cacheWays: addresses with the same place are kept side by side. One more replaces only one of them.
func (l *Lab) cacheWays(t *testing.T) {
	u, c := l.New(t), &l.Cache
	look := func(k int) { c.Look(u, uint64(k)*c.Apart) }
	kept := func() int {
		return len(slices.DeleteFunc(c.Kept(u), func(at uint64) bool { return at == 0 || at%c.Apart != 0 }))
	}
	for round := range 3 {
		for k := 1; k <= c.Ways; k++ {
			look(k)
		}
		must.True(t, kept() == c.Ways, "round %d: %d of %d kept", round, kept(), c.Ways)
	}
	for k := c.Ways + 1; k < 20; k++ {
		look(k)
		expect.True(t, kept() == c.Ways && slices.Contains(c.Kept(u), uint64(k)*c.Apart), "kept of %d", k)
	}
}

// setTableKeepsRules: if only managed code was added or removed, the rules of native code stay, and those of
// managed code follow the table.
func (l *Lab) setTableKeepsRules(t *testing.T) {
	u := l.New(t, l.Plain, Fn{})
	native := *u.Table().At(0)
	look := func(ip uint64) bool { return l.Cache.Look(u, ip) }
	kept := func() int { return len(l.Cache.Kept(u)) }
	set := func(gen uint32, managed ...memory.Range) {
		u.SetTable(module.NewTable(gen, []module.Module{native}, managed))
	}
	look(At(0))
	look(JitHi + 8)
	must.True(t, look(JitIP) && !look(JitHi+8) && kept() == 3, "%d kept", kept())
	set(2, memory.Range{Start: JitHi, End: JitHi + 16})
	expect.Slices(t, l.Cache.Kept(u), []uint64{At(0)}, "kept of the module")
	expect.True(t, !look(JitIP) && look(JitHi+8), "rules of the table before")
	set(3, memory.Range{Start: At(0), End: At(1)})
	expect.True(t, look(At(0)), "managed code in a module's range")
	native.ID++
	set(4)
	expect.Equal(t, kept(), 0, "kept of another module")
}
