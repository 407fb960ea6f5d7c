package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// Four addresses with the same place in the cache are kept side by side; a fifth
// replaces only one of them.
func TestCacheWays(t *testing.T) {
	u := New()
	look := func(k uint64) uint64 { return k << 24 }
	kept := func(n uint64) (found int) {
		for k := uint64(1); k <= n; k++ {
			for i := range u.cache {
				if e := &u.cache[i]; e.addr == look(k) && e.rule.bits != 0 {
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
