// Package module holds the immutable module table: which module's code is at
// an address, and which ranges hold managed code.
//
// A Table is built outside any suspension, never changed afterwards, and
// swapped as a whole. Readers need no lock.
//
// Sources: elf(5); Microsoft, "PE Format"; packages elf, pe, and cfi read these formats.
//
// Glossary. A module's *bias* is its mapped address minus its own (of a PE image: where
// its RVA 0 is). *Foreign JIT ranges* hold code that keeps frame pointers and that another
// code generator than the runtime made. A table's *generation* is a number that differs
// between tables with different content. Caches use it as their tag. *Managed ranges* hold
// the code that a runtime generated or loaded.
//
// Strategy: built once, sorted, looked up by bisection. Image hides
// the differences between image formats and is called rarely. The tables of unwind data
// serve every new address, so they are fields.
//
// Known gaps: if modules overlap, Find considers only the one with the highest start.
package module

import (
	"sort"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

// Module is one loaded image. At most one of Image, ELF, and PE is set. None is set if the
// image could not be read; then Err is the reason, and the range is still known.
type Module struct {
	ID      uint32 // stable for the life of the process, given by the caller
	Start   uint64 // first mapped address
	End     uint64 // one past the last
	Bias    uint64 // mapped address minus the image's own, which is a virtual address (ELF) or an RVA (PE)
	Path    string
	BuildID string
	Image   Image // nil if ELF or PE is set
	ELF     *elf.File
	CFI     *cfi.Table // of ELF, or of a PE with DWARF sections; nil if it has none
	PE      *pe.File
	Err     error

	// Endings are the image's own addresses of the functions that end a thread and a
	// program. They are set for images with hardly any unwind data that export these
	// functions, and 0 otherwise.
	Endings [2]uint64
	// FramePointers means that the image's code without unwind data keeps the frame
	// pointer, as V8's builtins do.
	FramePointers bool
	// Functions are the exported functions, sorted by address. They are set for images with
	// hardly any unwind data.
	Functions []Function
}

// Function is a function's start, in the image's own addresses, and its size in bytes.
type Function struct{ Addr, Size uint64 }

// Table is a set of modules, of managed ranges, and of foreign JIT ranges, sorted and immutable.
type Table struct {
	gen     uint32
	modules []Module
	managed []memory.Range
	jit     []memory.Range
}

// NewTable sorts modules and managed ranges into a table. gen tags caches: two
// tables with different content must have different generations.
func NewTable(gen uint32, modules []Module, managed []memory.Range) *Table {
	t := &Table{gen: gen, modules: append([]Module(nil), modules...),
		managed: append([]memory.Range(nil), managed...)}
	sort.Slice(t.modules, func(i, j int) bool { return t.modules[i].Start < t.modules[j].Start })
	sort.Slice(t.managed, func(i, j int) bool { return t.managed[i].Start < t.managed[j].Start })
	return t
}

// WithJIT returns a table of the same content and generation that has these foreign JIT ranges.
func (t *Table) WithJIT(ranges []memory.Range) *Table {
	n := *t
	n.jit = append([]memory.Range(nil), ranges...)
	sort.Slice(n.jit, func(i, j int) bool { return n.jit[i].Start < n.jit[j].Start })
	return &n
}

// Generation is the tag for caches of results from this table.
func (t *Table) Generation() uint32 { return t.gen }

// SameModules reports whether both tables have the same images at the same addresses.
// Managed ranges may differ. Results about the modules of one table, and their indices,
// are then valid for the other.
func (t *Table) SameModules(o *Table) bool {
	if len(t.modules) != len(o.modules) {
		return false
	}
	for i := range t.modules {
		if !t.modules[i].same(&o.modules[i]) {
			return false
		}
	}
	return true
}

// same compares the fields that a walk uses. Images are compared by identity, so an image
// that was read twice counts as two. Images of unknown formats are never the same.
func (m *Module) same(o *Module) bool {
	return m.ID == o.ID && m.Start == o.Start && m.End == o.End && m.Bias == o.Bias &&
		m.ELF == o.ELF && m.PE == o.PE && m.CFI == o.CFI && m.FramePointers == o.FramePointers &&
		m.Image == nil && o.Image == nil
}

// Len is the number of modules.
func (t *Table) Len() int { return len(t.modules) }

// At returns module i, 0 <= i < Len.
func (t *Table) At(i int) *Module { return &t.modules[i] }

// Find returns the index of the module whose range contains addr, or -1.
func (t *Table) Find(addr uint64) int {
	lo, hi := 0, len(t.modules)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.modules[mid].Start <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 && addr < t.modules[lo-1].End {
		return lo - 1
	}
	return -1
}

// Managed returns the managed ranges, sorted. They must not be changed.
func (t *Table) Managed() []memory.Range { return t.managed }

// IsManaged reports whether addr lies in a managed range.
func (t *Table) IsManaged(addr uint64) bool { return holds(t.managed, addr) }

// IsJIT reports whether addr lies in a foreign JIT range.
func (t *Table) IsJIT(addr uint64) bool { return holds(t.jit, addr) }

// holds reports whether one of the sorted ranges holds addr.
func holds(ranges []memory.Range, addr uint64) bool {
	lo, hi := 0, len(ranges)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if ranges[mid].Start <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo > 0 && addr < ranges[lo-1].End
}
