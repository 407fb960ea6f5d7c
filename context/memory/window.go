// Package memory provides bounded, readable windows of a target's memory.
//
// Sources: none. Package snapshot defines what may be read while a thread is suspended.
//
// Glossary. A *run* is bytes with the address they were copied from. The *hot* run is tried first. A *word*
// is eight bytes, little endian.
//
// A Window is a concrete type on purpose: the walkers read it once per stack word, and an interface call
// there costs more than the read itself. Every read is checked against the copied bytes. A read outside them
// returns false and never faults.
//
// Strategy: a read first tries one hot run, which is the copied stack of a thread. Then it searches a small
// sorted list of further runs, such as a second stack or data pages of a core.
//
// Known gaps: big-endian targets are not supported.
package memory

import (
	"encoding/binary"
	"sort"
)

// Run is one contiguous block of target memory: Data[0] is at Addr.
type Run struct {
	Addr uint64
	Data []byte
}

// End returns the address one past the run's last byte.
func (r Run) End() uint64 { return r.Addr + uint64(len(r.Data)) }

// Window is a set of runs that do not overlap. The zero Window is empty:
// every read returns false.
//
// Concurrent reads are safe. Reset and New are not safe for concurrent use.
type Window struct {
	hot  Run
	more []Run
}

// New returns a window over runs. The largest becomes the hot run. Runs that would wrap the address space are
// truncated at its end.
func New(runs ...Run) *Window {
	w := new(Window)
	sorted := make([]Run, 0, len(runs))
	for _, r := range runs {
		if room := -r.Addr; r.Addr != 0 && uint64(len(r.Data)) > room-1 {
			r.Data = r.Data[:room-1]
		}
		if len(r.Data) > 0 {
			sorted = append(sorted, r)
		}
	}
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Addr < sorted[j].Addr })
	for _, r := range sorted {
		if len(r.Data) > len(w.hot.Data) {
			w.hot = r
		}
	}
	w.more = sorted
	return w
}

// Reset sets the window to exactly one run, without allocating.
func (w *Window) Reset(addr uint64, data []byte) {
	w.hot = Run{addr, data}
	w.more = w.more[:0]
}

// Hot returns the run that is tried first, usually the copied stack.
func (w *Window) Hot() Run { return w.hot }

// Word reads the little-endian 64-bit word at addr.
func (w *Window) Word(addr uint64) (uint64, bool) {
	off := addr - w.hot.Addr
	if n := uint64(len(w.hot.Data)); n >= 8 && off <= n-8 {
		return binary.LittleEndian.Uint64(w.hot.Data[off:]), true
	}
	return w.slowWord(addr)
}

func (w *Window) slowWord(addr uint64) (uint64, bool) {
	b, ok := w.Bytes(addr, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// Bytes returns the n bytes at addr without copying them. They must be in one run.
func (w *Window) Bytes(addr uint64, n int) ([]byte, bool) {
	if n < 0 {
		return nil, false
	}
	if b, ok := w.hot.slice(addr, n); ok {
		return b, true
	}
	if r := w.below(addr); r != nil {
		return r.slice(addr, n)
	}
	return nil, false
}

// below returns the last further run that begins at or below addr, or nil.
func (w *Window) below(addr uint64) *Run {
	lo, hi := 0, len(w.more)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if w.more[mid].Addr <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	return &w.more[lo-1]
}

// Run returns the run that contains the word at addr.
func (w *Window) Run(addr uint64) (Run, bool) {
	if _, ok := w.hot.slice(addr, 8); ok {
		return w.hot, true
	}
	if r := w.below(addr); r != nil {
		if _, ok := r.slice(addr, 8); ok {
			return *r, true
		}
	}
	return Run{}, false
}

func (r Run) slice(addr uint64, n int) ([]byte, bool) {
	off, size := addr-r.Addr, uint64(len(r.Data))
	if off > size || uint64(n) > size-off {
		return nil, false
	}
	return r.Data[off : off+uint64(n) : off+uint64(n)], true
}
