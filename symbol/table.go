// Package symbol names addresses: ELF symbol tables, separate debug files, the
// compressed mini debug info, the exports and PDBs of PE images.
//
// Sources: the ELF gABI (symbol table, st_size, st_other); the GDB manual
// "Separate Debug Files" and "MiniDebugInfo" (.gnu_debuglink, build-id
// directories, .gnu_debugdata); the .xz file format 1.2.
//
// Glossary. An address is the image's own: the mapped one minus the module's
// bias. A symbol covers an address if its size says so; a symbol without a size
// (hand-written assembly) covers what the unwind table's record at its place
// covers, or nothing.
//
// Strategy. An address gets a name only if a symbol covers it. The nearest
// symbol before it would be a wrong guess in a stripped library. One image is
// read once, into one sorted table. All of this runs after sampling: nothing
// here may be called while a thread is suspended.
//
// Known gaps: lines come from PDBs only; no inlined functions, no DWARF names. The
// public names of templates and operators in PDBs stay decorated. Without its image a PDB names
// procedures only. BCJ filters in .gnu_debugdata are refused.
package symbol

import (
	"cmp"
	"slices"
	"strings"
)

// Symbol is a named range of code.
type Symbol struct {
	Addr uint64 // the image's own address
	Size uint64 // bytes; 0 = missing
	Name string // as in the file, mangled
	Rank int8   // of several symbols for one address, the highest is shown; see the Rank constants
}

// Ranks of a symbol's binding.
const (
	RankLocal  = 0
	RankWeak   = 1
	RankGlobal = 2
)

// Cover returns the unwind record's range that contains addr, or false.
type Cover func(addr uint64) (start, end uint64, ok bool)

// Table finds the symbol that covers an address. It is immutable.
type Table struct{ entries []entry }

type entry struct {
	start, end uint64
	name       string
	outer      int32 // nearest earlier entry that extends beyond start, -1 = none
}

// NewTable sorts symbols. cover, which may be nil, gives a size to symbols without one, except to labels
// inside a symbol with a size. The slice is reordered.
func NewTable(symbols []Symbol, cover Cover) *Table {
	sized := slices.DeleteFunc(slices.Clone(symbols), func(s Symbol) bool { return s.Size == 0 })
	t := tableOf(sized)
	if len(sized) == len(symbols) || cover == nil {
		return t
	}
	for i := range symbols {
		s := &symbols[i]
		if _, into, ok := t.Find(s.Addr); s.Size != 0 || ok && into != 0 {
			continue
		}
		if start, end, ok := cover(s.Addr); ok && start <= s.Addr && s.Addr < end {
			s.Size = end - s.Addr
		}
	}
	return tableOf(symbols)
}

func tableOf(symbols []Symbol) *Table {
	slices.SortStableFunc(symbols, order)
	t := &Table{}
	for i := range symbols {
		t.add(&symbols[i])
	}
	return t
}

// order sorts by address; of several symbols for one address, the one to show comes first.
func order(a, b Symbol) int {
	return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Rank, a.Rank),
		cmp.Compare(underscores(a.Name), underscores(b.Name)),
		cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name))
}

// underscores counts leading underscores: of several aliases, the one with the fewest is the public name.
func underscores(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }

// add appends a symbol unless it covers nothing or is a second name for an address. A second name with a
// larger range is kept for the rest of that range.
func (t *Table) add(s *Symbol) {
	start, end := s.Addr, s.Addr+s.Size
	if s.Name == "" || s.Size == 0 || end < start {
		return
	}
	if n := len(t.entries); n > 0 && t.entries[n-1].start == start {
		last := &t.entries[n-1]
		last.end = max(last.end, end)
		return
	}
	t.entries = append(t.entries, entry{start: start, end: end, name: s.Name, outer: t.outerOf(start)})
}

// outerOf returns the nearest entry that extends beyond start. All such entries are in the chain of outer
// entries, so only the chain is searched.
func (t *Table) outerOf(start uint64) int32 {
	i := int32(len(t.entries)) - 1
	for i >= 0 && t.entries[i].end <= start {
		i = t.entries[i].outer
	}
	return i
}

// Len returns the number of addresses with a name.
func (t *Table) Len() int { return len(t.entries) }

// Find returns the mangled name of the innermost symbol that covers addr, and the offset of addr in it.
func (t *Table) Find(addr uint64) (name string, offset uint64, ok bool) {
	i, found := slices.BinarySearchFunc(t.entries, addr,
		func(e entry, a uint64) int { return cmp.Compare(e.start, a) })
	if !found {
		i--
	}
	for j, steps := int32(i), 0; j >= 0 && steps < maxNested; j, steps = t.entries[j].outer, steps+1 {
		if e := &t.entries[j]; addr < e.end {
			return e.name, addr - e.start, true
		}
	}
	return "", 0, false
}

// maxNested bounds the symbols around one address that Find checks: real ones are a handful.
const maxNested = 1 << 14
