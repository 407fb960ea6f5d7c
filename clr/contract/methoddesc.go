package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context/memory"
)

// MethodDescs reads the runtime's MethodDescs and Modules. It is not safe for concurrent
// use.
type MethodDescs struct {
	v view
	l descLayout
}

// descLayout are the offsets of structures reachable from a MethodDesc.
type descLayout struct {
	chunkIndex, flags, remainder      uint64 // MethodDesc
	chunkSize, chunkTable, chunkRange uint64 // MethodDescChunk
	typeModule                        uint64 // MethodTable
	tokenBits, alignment              uint64
	base                              []uint64 // links from a Module to its image
	// of the Module's map from rows to MethodDescs, 0 = not published and not found yet
	rows uint64
}

// MethodRow identifies a method by its module and its row in the module's metadata.
type MethodRow struct {
	Table, Module uint64 // the type's MethodTable, its Module
	RID           int
	Dynamic       bool // it has no metadata, and the other fields are 0
}

// Kinds of MethodDesc (src/coreclr/vm/method.hpp, MethodClassification).
const (
	descKindMask = 7
	descDynamic  = 7
)

// NewMethodDescs returns a reader that uses the offsets in d. All must be present. The error is an *Error.
func NewMethodDescs(r memory.Reader, d *Descriptor) (*MethodDescs, error) {
	m := &MethodDescs{v: view{r: r}}
	var base uint64
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"MethodDesc", "ChunkIndex", &m.l.chunkIndex}, {"MethodDesc", "Flags", &m.l.flags},
		{"MethodDesc", "Flags3AndTokenRemainder", &m.l.remainder}, {"MethodDescChunk", "!", &m.l.chunkSize},
		{"MethodDescChunk", "MethodTable", &m.l.chunkTable},
		{"MethodDescChunk", "FlagsAndTokenRange", &m.l.chunkRange},
		{"MethodTable", "Module", &m.l.typeModule}, {"Module", "Base", &base},
	} {
		off, ok := d.Offset(f.typ, f.field)
		if !ok {
			return nil, &Error{"contract descriptor", 0, 0, "no field " + f.typ + "." + f.field}
		}
		*f.to = uint64(off)
	}
	m.l.base = append([]uint64{base}, d.toBase...)
	m.l.rows = uint64(d.Types["Module"]["MethodDefToDescMap"])
	m.l.tokenBits, m.l.alignment = 12, 8
	if g, ok := d.Globals["MethodDescTokenRemainderBitCount"]; ok && !g.Indirect && g.Value < 24 {
		m.l.tokenBits = g.Value
	}
	if g, ok := d.Globals["MethodDescAlignment"]; ok && !g.Indirect && g.Value <= 64 {
		m.l.alignment = g.Value
	}
	return m, nil
}

// Flags returns a MethodDesc's flags.
func (m *MethodDescs) Flags(desc uint64) (uint16, bool) {
	if desc == 0 {
		return 0, false
	}
	return m.u16(desc + m.l.flags)
}

// Row returns the metadata row of a MethodDesc, false if it cannot be read.
func (m *MethodDescs) Row(desc uint64) (r MethodRow, ok bool) {
	flags, ok := m.Flags(desc)
	if !ok {
		return r, false
	}
	if flags&descKindMask == descDynamic {
		return MethodRow{Dynamic: true}, true
	}
	index, ok := m.u16(desc + m.l.chunkIndex)
	remainder, ok1 := m.u16(desc + m.l.remainder)
	chunk := desc - m.l.chunkSize - uint64(index&0xff)*m.l.alignment
	bits, ok2 := m.u16(chunk + m.l.chunkRange)
	table, ok3 := m.v.word(chunk + m.l.chunkTable)
	if !ok || !ok1 || !ok2 || !ok3 || table == 0 {
		return r, false
	}
	module, ok := m.Module(table)
	mask := uint64(1)<<m.l.tokenBits - 1
	rid := uint64(bits)&(1<<(24-m.l.tokenBits)-1)<<m.l.tokenBits | uint64(remainder)&mask
	return MethodRow{Table: table, Module: module, RID: int(rid)}, ok
}

// Module returns the Module of a MethodTable.
func (m *MethodDescs) Module(table uint64) (uint64, bool) { return m.v.word(table + m.l.typeModule) }

// Base returns the address of a Module's image, false if it has none.
func (m *MethodDescs) Base(module uint64) (uint64, bool) {
	at := module
	for _, off := range m.l.base {
		next, ok := m.v.word(at + off)
		if !ok || next == 0 {
			return 0, false
		}
		at = next
	}
	return at, true
}

func (m *MethodDescs) u16(addr uint64) (uint16, bool) {
	b, ok := m.v.bytes(addr, 2)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint16(b), true
}

// A Module's map from rows to MethodDescs is a list of tables (ceeload.h, LookupMap).
const (
	mapNext   = 0
	mapTable  = 8
	mapCount  = 16
	maxTables = 16
	maxModule = 2048 // bytes of a Module searched for its map
	maxSearch = 8    // searches of one MethodDescs
)

// agreement is whether a module's map from rows to MethodDescs contains a MethodDesc.
type agreement uint8

const (
	rowAgrees      agreement = iota
	rowOther                 // the map has another instantiation of the row, or nothing yet
	rowContradicts           // the map has another row's method, or lacks the row
)

// agrees compares a method with its module's map. If the runtime does not publish the map's offset,
// findRows searches for it. search counts these searches; beyond maxSearch the method contradicts.
func (m *MethodDescs) agrees(desc uint64, r MethodRow, search *int) agreement {
	if m.l.rows == 0 {
		if *search++; *search > maxSearch {
			return rowContradicts
		}
		return m.findRows(desc, r)
	}
	entry, ok := m.entry(r.Module+m.l.rows, uint64(r.RID))
	switch {
	case !ok:
		return rowContradicts
	case entry == desc:
		return rowAgrees
	case entry == 0:
		return rowOther
	}
	if other, ok := m.Row(entry); !ok || other.RID != r.RID || other.Module != r.Module {
		return rowContradicts
	}
	return rowOther
}

// entry returns a row's MethodDesc in the map at an address, false if the map lacks the row.
func (m *MethodDescs) entry(at, rid uint64) (desc uint64, ok bool) {
	for range maxTables {
		table, ok1 := m.v.word(at + mapTable)
		count, ok2 := m.v.u32(at + mapCount)
		next, ok3 := m.v.word(at + mapNext)
		switch {
		case !ok1 || !ok2 || !ok3:
			return 0, false
		case rid < uint64(count):
			return m.v.word(table + 8*rid)
		case next == 0:
			return 0, false
		}
		at, rid = next, rid-uint64(count)
	}
	return 0, false
}

// findRows searches a Module for the map that has desc in its row, and keeps the map's offset: only the
// right map has it there. Without such a map, it returns rowOther.
func (m *MethodDescs) findRows(desc uint64, r MethodRow) agreement {
	for off := uint64(8); off < maxModule; off += 8 {
		if entry, ok := m.entry(r.Module+off, uint64(r.RID)); ok && entry == desc && r.RID > 0 {
			m.l.rows = off
			return rowAgrees
		}
	}
	return rowOther
}
