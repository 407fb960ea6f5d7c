package arm64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// cacheSize is the number of cached rules.
const cacheSize = 2048

// entry is one address's rule. The zero rule (no Kind) marks an empty entry.
type entry struct {
	addr uint64
	rule Rule
}

// Unwinder steps and walks stacks of one process. It holds the rule cache and the interpreter's storage
// (about 240 KiB), so keep one per walking thread; it is not safe for concurrent use.
type Unwinder struct {
	table   *module.Table
	noCache bool
	hooks   []unwind.ReturnHook
	trust   unwind.Trust // how the last step found the caller
	turn    uint64       // selects the entry to replace, see place
	cache   [cacheSize]entry
	after   [cacheSize]uint16 // for each entry, the one that followed it last
	unkept  entry             // the last rule made while nothing is cached
	machine cfi.Machine
	row     cfi.Row
	next    cfi.Row // after straight code
	env     cfi.ExprEnv
	packed  pearm64.Buffer
	undo    undo

	follower follower
	section  section
}

// New returns an unwinder over an empty module table.
func New() *Unwinder {
	return &Unwinder{table: module.NewTable(0, nil, nil)}
}

// SetTable sets the table for the following steps; nil changes nothing. If t has another generation than the
// current table, it drops cached rules: all of them, or only those of managed code if both tables have the
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

// dropManaged drops the rules of addresses that are or were managed code, because a runtime makes and frees
// such code while the native modules stay.
func (u *Unwinder) dropManaged() {
	for i := range u.cache {
		if e := &u.cache[i]; e.rule.Managed() || u.table.IsManaged(e.addr) {
			*e = entry{}
		}
	}
}

// Arch implements unwind.Walker.
func (u *Unwinder) Arch() context.Arch { return context.ArchARM64 }

// Table returns the current table.
func (u *Unwinder) Table() *module.Table { return u.table }

// DisableCache makes every look-up start from the unwind data, for tests and to find out whether the cache is
// wrong.
func (u *Unwinder) DisableCache(off bool) {
	u.noCache = off
	u.flush()
}

func (u *Unwinder) flush() { clear(u.cache[:]) }

// slotFor spreads addresses over the cache. A return address is looked up with one byte less, so the two low
// bits distinguish the two kinds. An address's rule is in this entry or in one of the three next to it: with
// one place only, the rules of many stacks would keep replacing each other.
func slotFor(addr uint64) uint64 {
	return (addr>>2 ^ addr>>13) & (cacheSize - 1)
}

const ways = 4

// lookup returns the rule for an address, which depends only on its look-up address. It is valid until the
// next look-up.
func (u *Unwinder) lookup(a unwind.Address) *Rule {
	addr := a.Lookup()
	for way, slot := uint64(0), slotFor(addr); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr && e.rule.kind != RuleNone {
			return &e.rule
		}
	}
	return u.miss(addr)
}

// hit looks only at the first place for an address's rule; nil if the rule is not there.
func (u *Unwinder) hit(addr uint64) *Rule {
	if e := &u.cache[slotFor(addr)]; e.addr == addr && e.rule.kind != RuleNone {
		return &e.rule
	}
	return nil
}

// miss makes a rule and caches it.
func (u *Unwinder) miss(addr uint64) *Rule {
	e := &u.unkept
	if !u.noCache {
		e = u.place(addr)
	}
	e.addr, e.rule = addr, u.resolve(addr)
	return &e.rule
}

// place returns the entry for a new rule: an empty one, or one of the four in turn.
func (u *Unwinder) place(addr uint64) *entry {
	slot := slotFor(addr)
	for way := range uint64(ways) {
		if e := &u.cache[slot^way]; e.rule.kind == RuleNone {
			return e
		}
	}
	u.turn++
	return &u.cache[slot^u.turn%ways]
}

// resolve makes an address's rule from the module table.
func (u *Unwinder) resolve(addr uint64) Rule {
	i := u.table.Find(addr)
	r := makeRule(RuleNoInfo, i)
	if i >= 0 {
		r = u.resolveIn(u.table.At(i), i, addr)
	}
	if u.table.IsManaged(addr) {
		r.saved |= flagManaged
	}
	return r
}

func (u *Unwinder) resolveIn(m *module.Module, i int, addr uint64) Rule {
	switch {
	case m.PE != nil:
		return u.resolvePE(m, i, addr)
	case m.CFI != nil:
		return u.resolveCFI(m, i, addr)
	}
	return makeRule(RuleNoInfo, i)
}
