// Package clrasm writes the metadata of managed modules for tests, with no code of a
// reader.
//
// Sources: ECMA-335, 6th edition, partition II, sections 22 to 24; Portable PDB v1.0
// (dotnet/runtime docs/design/specs/PortablePdb-Metadata.md).
//
// Strategy. The caller gives the rows in the order of the tables, and they are written as
// they are. A table that the format wants sorted must be sorted by the caller.
//
// Known gaps: indexes have 16 bits. So a heap has fewer than 65,536 bytes, and a table
// fewer than 65,536 rows.
package clrasm

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// Module is metadata under way.
type Module struct {
	strings, blobs []byte
	pdb            []byte // debugging metadata
	rows           map[byte][][]byte
}

// New begins a module with the type <Module>.
func New() *Module {
	m := &Module{strings: []byte{0}, blobs: []byte{0}, rows: map[byte][][]byte{}}
	m.Type("<Module>", "")
	return m
}

// Tables.
const (
	typeRef      = 0x01
	typeDef      = 0x02
	field        = 0x04
	methodDef    = 0x06
	attribute    = 0x0c
	nestedClass  = 0x29
	genericParam = 0x2a
)

func (m *Module) text(s string) uint16 {
	if s == "" {
		return 0
	}
	at := len(m.strings)
	m.strings = append(append(m.strings, s...), 0)
	return uint16(at)
}

func (m *Module) blob(b []byte) uint16 {
	if b == nil {
		return 0
	}
	at := len(m.blobs)
	m.blobs = append(append(m.blobs, byte(len(b))), b...) // below 128
	return uint16(at)
}

// row adds a row of columns: uint16 or uint32.
func (m *Module) row(table byte, columns ...any) int {
	var b []byte
	for _, c := range columns {
		switch c := c.(type) {
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, c)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, c)
		}
	}
	m.rows[table] = append(m.rows[table], b)
	return len(m.rows[table])
}

// Reference adds a TypeRef; scope is a ResolutionScope.
func (m *Module) Reference(name, space string, scope uint16) int {
	return m.row(typeRef, scope, m.text(name), m.text(space))
}

// Type adds a type; the fields and methods added next are its.
func (m *Module) Type(name, space string) int {
	return m.row(typeDef, uint32(0), m.text(name), m.text(space), uint16(0), uint16(len(m.rows[field])+1),
		uint16(len(m.rows[methodDef])+1))
}

// Field adds a field to the last type.
func (m *Module) Field(name string) { m.row(field, uint16(0), m.text(name), uint16(0)) }

// Method adds a method to the last type.
func (m *Module) Method(name string, signature []byte) int {
	return m.row(methodDef, uint32(0), uint16(0), uint16(0), m.text(name), m.blob(signature), uint16(1))
}

// Starts marks a method as the start of a state machine, by an attribute.
func (m *Module) Starts(method int, class string) {
	b := append([]byte{1, 0, byte(len(class))}, class...)
	m.row(attribute, uint16(method<<5), uint16(3), m.blob(append(b, 0, 0)))
}

// Nested marks a type as nested in another.
func (m *Module) Nested(inner, outer int) { m.row(nestedClass, uint16(inner), uint16(outer)) }

// Parameter names a type parameter of a type, or of a method.
func (m *Module) Parameter(n int, name string, owner int, ofMethod bool) {
	tag := uint16(0)
	if ofMethod {
		tag = 1
	}
	m.row(genericParam, uint16(n), uint16(0), uint16(owner)<<1|tag, m.text(name))
}

// Bytes is all metadata.
func (m *Module) Bytes() []byte {
	le := binary.LittleEndian
	var numbers []byte
	for t := range m.rows {
		numbers = append(numbers, t)
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	valid := uint64(0)
	var counts, body []byte
	for _, t := range numbers {
		valid |= 1 << t
		counts = le.AppendUint32(counts, uint32(len(m.rows[t])))
		body = append(body, bytes.Join(m.rows[t], nil)...)
	}
	tables := le.AppendUint64(make([]byte, 8), valid)
	tables = append(append(le.AppendUint64(tables, 0), counts...), body...)
	type stream struct {
		name string // with its padding
		b    []byte
	}
	streams := []stream{{"#~\x00\x00", tables}, {"#Strings\x00\x00\x00\x00", m.strings},
		{"#Blob\x00\x00\x00", m.blobs}}
	if m.pdb != nil {
		streams = append(streams, stream{"#Pdb\x00\x00\x00\x00", m.pdb})
	}
	out := append([]byte("BSJB"), 1, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 'v', '4', 0,
		0, 0, 0, byte(len(streams)), 0)
	at := len(out)
	for _, s := range streams {
		at += 8 + len(s.name)
	}
	for _, s := range streams {
		out = le.AppendUint32(out, uint32(at))
		out = le.AppendUint32(out, uint32(len(s.b)))
		out = append(out, s.name...)
		at += len(s.b)
	}
	for _, s := range streams {
		out = append(out, s.b...)
	}
	return out
}
