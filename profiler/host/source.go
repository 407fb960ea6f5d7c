package host

/*
#include "shim.h"
*/
import "C"

import (
	"cmp"
	"slices"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/sample/agent"
)

// Bounds of a map of IL and native code.
const (
	usualMap = 1 << 10
	maxMap   = 1 << 16
)

// ilMap is the map of the last method: stacks often have many frames of one method.
type ilMap struct {
	room   []C.struct_sw_il
	begin  uint64
	bounds []contract.Bound
	end    uint32 // end of the last entry's code
}

// Source implements agent.Process with the CLR's map and the module's Portable PDB.
func (h *process) Source(f clr.FunctionID, addr uint64, il bool) (s agent.Source, ok bool) {
	var shape C.struct_sw_shape
	images := h.Images()
	if clr.HRESULT(C.sw_function_shape(C.uint64_t(f), &shape)).Failed() {
		return s, false
	}
	lines := images != nil && shape.base != 0 && images.HasLines(uint64(shape.base))
	if !lines && !il {
		return s, false
	}
	if s.IL, ok = h.ilAt(f, addr); !ok {
		return s, false
	}
	if lines {
		s.Place, _ = images.Place(uint64(shape.base), int(shape.token&0xffffff), s.IL)
	}
	return s, true
}

// ilAt returns the offset in a method's IL for the code at an address, false if the CLR has no map of
// it.
func (h *process) ilAt(f clr.FunctionID, addr uint64) (il uint32, ok bool) {
	m := &h.il
	if m.room == nil {
		m.room = make([]C.struct_sw_il, usualMap)
	}
	var begin C.uint64_t
	var count C.uint32_t
	for range 2 {
		hr := clr.HRESULT(C.sw_il_map(C.uint64_t(f), C.uint64_t(addr), &begin, &m.room[0],
			C.uint32_t(len(m.room)), &count))
		if hr.Failed() || count == 0 || count > maxMap {
			return 0, false
		}
		if int(count) <= len(m.room) {
			break
		}
		m.room = make([]C.struct_sw_il, count)
	}
	if int(count) > len(m.room) {
		return 0, false
	}
	m.take(uint64(begin), m.room[:count])
	at := addr - m.begin
	if at >= uint64(m.end) {
		return 0, false
	}
	return contract.ILAt(m.bounds, uint32(at))
}

// take sorts the map by code address. Empty parts are skipped.
func (m *ilMap) take(begin uint64, from []C.struct_sw_il) {
	m.begin, m.bounds, m.end = begin, m.bounds[:0], 0
	for _, e := range from {
		m.end = max(m.end, uint32(e.end))
		if e.start < e.end || e.end == 0 {
			m.bounds = append(m.bounds, contract.Bound{Native: uint32(e.start), IL: uint32(e.il)})
		}
		if e.end == 0 { // up to the method's end, wherever that is
			m.end = 1<<32 - 1
		}
	}
	slices.SortStableFunc(m.bounds, func(a, b contract.Bound) int { return cmp.Compare(a.Native, b.Native) })
}
