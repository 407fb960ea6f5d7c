package amd64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// cacheSize is the number of cached rules.
const cacheSize = 4096

// entry is one address's rule. The zero rule (no Kind) marks an empty entry.
type entry struct {
	addr uint64
	rule Rule
}

// Unwinder steps and walks stacks of one process. It holds the rule cache and the interpreter's storage
// (about 300 KiB), so keep one per walking thread; it is not safe for concurrent use.
type Unwinder struct {
	table   *module.Table
	noCache bool
	hooks   []unwind.ReturnHook
	pushes  []pushes     // of return hooks with call frame information
	unknown int64        // Off of return hooks with unknown code; 0: there are none
	trust   unwind.Trust // how the last step found the caller
	nside   int
	rules
	sides    [maxSide]side
	pe       peRules
	machine  cfi.Machine
	row      cfi.Row
	thunks   thunkCFAs
	env      cfi.ExprEnv
	follower follower
}

// rules are a cache of rules, and the storage of the fused steps that use them.
type rules struct {
	cache   [cacheSize]entry
	after   [cacheSize]uint16 // for each entry, the one that followed it last: see follows
	turn    uint64            // selects the entry to replace, see place
	section section
}

// New returns an unwinder over an empty module table.
func New() *Unwinder {
	return &Unwinder{table: module.NewTable(0, nil, nil)}
}

// SetTable sets the table for the following steps; nil changes nothing. If t has another generation than the
// current table, it drops cached rules: all of them, or only those of generated code if both tables have the
// same modules. It allocates nothing.
func (u *Unwinder) SetTable(t *module.Table) {
	if t == nil || t == u.table {
		return
	}
	prev := u.table
	u.table = t
	switch {
	case t.Generation() == prev.Generation():
	case t.SameModules(prev):
		u.dropManaged()
	default:
		u.flush()
	}
}

// dropManaged drops the rules of addresses in generated code (by the old or the new table) and of addresses
// in no module. Such code comes and goes while the native modules stay.
func (u *Unwinder) dropManaged() {
	for i := range u.cache {
		if e := &u.cache[i]; e.rule.Managed() || e.rule.Module() < 0 || u.table.IsManaged(e.addr) {
			*e = entry{}
		}
	}
}

// Arch implements unwind.Walker.
func (u *Unwinder) Arch() context.Arch { return context.ArchAMD64 }

// Table returns the current table.
func (u *Unwinder) Table() *module.Table { return u.table }

// DisableCache makes every look-up start from the unwind data, for tests and to find out whether the cache is
// wrong.
func (u *Unwinder) DisableCache(off bool) {
	u.noCache = off
	u.flush()
}

func (u *Unwinder) flush() {
	u.cache = [cacheSize]entry{}
	u.nside = 0
	u.pe.clear()
}

// slotFor spreads addresses over the cache: call sites are rarely closer than two bytes, and modules begin at
// the same low bits. An address's rule is in this entry or in one of the three next to it: with one place
// only, a third of 1,600 addresses would keep replacing each other.
func slotFor(addr uint64) uint64 { return (addr ^ addr>>12) & (cacheSize - 1) }

const ways = 4

// lookup returns the rule for an address, by its look-up address. Only the rule of a PE function depends on
// whether the address is exact, and records that. Rules without bits are misses: for address 0, kept finds
// empty entries.
func (u *Unwinder) lookup(a unwind.Address) Rule {
	if r := u.kept(a.Lookup()); r.bits != 0 {
		return r
	}
	return u.miss(a)
}

// miss makes a rule and caches it.
func (u *Unwinder) miss(a unwind.Address) Rule {
	r := u.resolve(a)
	if addr := a.Lookup(); !u.noCache {
		*u.place(addr) = entry{addr, r}
	}
	return r
}

// amend adds findings about an address's code to its rule, if the rule is in the cache.
func (u *rules) amend(a unwind.Address, r Rule, bits uint64) {
	addr := a.Lookup()
	for way, slot := uint64(0), slotFor(addr); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr && e.rule == r {
			e.rule.bits |= bits
			return
		}
	}
}

// place returns the entry for a new rule: an empty one, or one of the four in turn.
func (u *rules) place(addr uint64) *entry {
	slot := slotFor(addr)
	for way := range uint64(ways) {
		if e := &u.cache[slot^way]; e.rule.bits == 0 {
			return e
		}
	}
	u.turn++
	return &u.cache[slot^u.turn%ways]
}

// resolve makes an address's rule from the module table.
func (u *Unwinder) resolve(a unwind.Address) Rule {
	addr := a.Lookup()
	i := u.table.Find(addr)
	r := makeRule(RuleNoInfo, i)
	if i >= 0 {
		r = u.resolveIn(u.table.At(i), i, a)
	}
	if u.table.IsManaged(addr) {
		r.bits |= managedBit
	} else if i < 0 && u.table.IsJIT(addr) {
		r.bits |= jitBit
	}
	return r
}

func (u *Unwinder) resolveIn(m *module.Module, i int, a unwind.Address) Rule {
	switch {
	case m.PE != nil:
		return u.resolvePE(m, i, a)
	case m.CFI != nil:
		return u.resolveCFI(m, i, a)
	}
	return makeRule(RuleNoInfo, i)
}
