// Package metadata reads names of types and methods from the metadata of a managed module, and lines from its
// debugging metadata (Portable PDB).
//
// Sources: ECMA-335, 6th edition, partition II, sections 22 to 24; Portable PDB v1.0 (dotnet/runtime
// docs/design/specs/PortablePdb-Metadata.md).
//
// Glossary. A *row id* (rid) counts from 1; a *token* is a table's number in the highest byte and a rid.
// *Heaps* hold strings and blobs.
//
// Strategy. The bytes come from the module's file or memory and are not trusted: every offset and count is
// checked before use, and an unreadable name is empty. Only the requested names are copied.
//
// The name of an overloaded method has its parameter list. The metadata decides whether a method is
// overloaded, so every recording of a program gives the method the same name.
//
// Compilers write the compressed form of the tables (#~). Reflection.Emit makes the uncompressed one (#-), in
// which a table of pointers can stand between a type and its methods.
//
// Known gaps: pointers to fields, parameters, and properties are not followed. Lambdas with the same number
// in overloads, and local functions with the same name in one method, have the same name.
package metadata

import (
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
)

// Error is a part of the metadata that cannot be used, and the reason.
type Error struct {
	Part  string
	Value uint64
	Msg   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("metadata %s: %s (value %#x)", e.Part, e.Msg, e.Value)
}

// Bounds of what is read.
const (
	MaxSize   = 256 << 20
	maxRows   = 1 << 24 // a rid has 24 bits
	maxNested = 32
	maxName   = 1 << 10
)

// table locates the rows of a table.
type table struct {
	rows, size int
	at         int   // in tables
	columns    []int // offset of each column, and size at the end
}

// Module is a module's metadata. It is immutable after Parse.
type Module struct {
	tables  []byte
	strings []byte
	blobs   []byte
	pdb     []byte // of debugging metadata: the stream that identifies the module
	guids   int    // offset of the GUID heap in the metadata, 0 = none
	table   [len(schema)]table
}

// Parse parses the headers of metadata, which starts with its signature.
func Parse(b []byte) (*Module, error) {
	if len(b) < 32 || len(b) > MaxSize || string(b[:4]) != "BSJB" {
		return nil, &Error{"signature", uint64(len(b)), "not metadata"}
	}
	version := uint64(binary.LittleEndian.Uint32(b[12:]))
	at := 16 + version
	if version > 256 || at+4 > uint64(len(b)) {
		return nil, &Error{"version", version, "too long"}
	}
	m := &Module{}
	count, at := int(binary.LittleEndian.Uint16(b[at+2:])), at+4
	for range min(count, 16) {
		name, data, next, ok := stream(b, at)
		if !ok {
			return nil, &Error{"stream header", at, "out of bounds"}
		}
		switch name {
		case "#~", "#-":
			m.tables = data
		case "#Strings":
			m.strings = data
		case "#Blob":
			m.blobs = data
		case "#Pdb":
			m.pdb = data
		case "#GUID":
			m.guids = cap(b) - cap(data)
		}
		at = next
	}
	if m.tables == nil {
		return nil, &Error{"streams", uint64(count), "no tables"}
	}
	return m, m.layout()
}

// stream reads the stream header at an offset, and returns the offset of the next one.
func stream(b []byte, at uint64) (name string, data []byte, next uint64, ok bool) {
	if at+12 > uint64(len(b)) {
		return "", nil, 0, false
	}
	off, size := uint64(binary.LittleEndian.Uint32(b[at:])), uint64(binary.LittleEndian.Uint32(b[at+4:]))
	name = text(b[at+8:], 32)
	if off+size > uint64(len(b)) {
		return "", nil, 0, false
	}
	return name, b[off : off+size], at + 8 + uint64(len(name)+4)&^3, true
}

// text returns a zero-terminated string, "" if its end is not within limit bytes.
func text(b []byte, limit int) string {
	for i := range min(len(b), limit) {
		if b[i] == 0 {
			return string(b[:i])
		}
	}
	return ""
}

// layout computes the offset of each table.
func (m *Module) layout() error {
	t := m.tables
	if len(t) < 24 {
		return &Error{"tables", uint64(len(t)), "too short"}
	}
	heaps, valid := t[6], binary.LittleEndian.Uint64(t[8:])
	at := 24
	var rows [64]int
	for i := range rows {
		if valid>>i&1 == 0 {
			continue
		}
		if at+4 > len(t) {
			return &Error{"row counts", valid, "cut"}
		}
		n := binary.LittleEndian.Uint32(t[at:])
		if n > maxRows {
			return &Error{"row count", uint64(n), "too large"}
		}
		rows[i], at = int(n), at+4
	}
	if heaps&0x40 != 0 { // extra data
		at += 4
	}
	for i := range m.table {
		columns := columnsOf(schema[i], heaps, &rows)
		size := columns[len(columns)-1]
		if rows[i] > 0 && (size == 0 || at > len(t) || rows[i] > (len(t)-at)/size) {
			return &Error{"table", uint64(i), "out of bounds"}
		}
		m.table[i] = table{rows[i], size, at, columns}
		at += rows[i] * size
	}
	return nil
}

// columnsOf returns the offset of each column of a table, and the row's size.
func columnsOf(spec string, heaps byte, rows *[64]int) []int {
	var out []int
	at := 0
	for _, c := range strings.Fields(spec) {
		out = append(out, at)
		at += width(c, heaps, rows)
	}
	return append(out, at)
}

func width(column string, heaps byte, rows *[64]int) int {
	wide := false
	switch column[0] {
	case '4':
		return 4
	case 's':
		wide = heaps&1 != 0
	case 'g':
		wide = heaps&2 != 0
	case 'b':
		wide = heaps&4 != 0
	case 't':
		var n int
		fmt.Sscanf(column[1:], "%x", &n)
		wide = rows[n] > 0xffff
	case 'c':
		c := codes[column[1]]
		for _, t := range c.tables {
			wide = wide || rows[t] > 0xffff>>c.bits
		}
	}
	if wide {
		return 4
	}
	return 2
}

// cell returns a column of a row, or 0.
func (m *Module) cell(t, rid, column int) int {
	tab := &m.table[t]
	if rid < 1 || rid > tab.rows {
		return 0
	}
	b := m.tables[tab.at+(rid-1)*tab.size+tab.columns[column]:]
	if tab.columns[column+1]-tab.columns[column] == 4 {
		return int(binary.LittleEndian.Uint32(b))
	}
	return int(binary.LittleEndian.Uint16(b))
}

func (m *Module) text(index int) string {
	if index < 0 || index >= len(m.strings) {
		return ""
	}
	return text(m.strings[index:], maxName)
}

// ID returns the offset of the module's version ID (MVID) in the metadata: the 16 bytes that no other build
// of any module has. It returns 0 if the metadata lacks it.
func (m *Module) ID() int {
	i := m.cell(tableModule, 1, 2)
	if i < 1 || m.guids == 0 {
		return 0
	}
	return m.guids + 16*(i-1)
}

// Assembly returns the name of the assembly whose manifest is in this module, "" for other modules.
func (m *Module) Assembly() string { return m.text(m.cell(tableAssembly, 1, 7)) }

// Method returns the name of a method, Namespace.Outer+Inner::Method, which is input for package demangle; ""
// if there is no such method.
func (m *Module) Method(rid int) string {
	name := m.text(m.cell(tableMethodDef, rid, 3))
	if name == "" {
		return ""
	}
	owner := m.owner(rid)
	if typ := m.Type(owner); typ != "" && typ != global {
		return typ + "::" + name + m.machine(owner, name)
	}
	return name
}

// maxMachine bounds the fields of a state machine that are read: those that show its kind are among the
// first.
const maxMachine = 64

// basicMachine begins the names of Visual Basic's state machines: VB$StateMachine_5_Run.
const basicMachine = "VB$StateMachine_"

// machine returns the kind of a class that is a state machine, for its MoveNext, "" for other methods or
// classes. The compilers' fields show it (Roslyn's, mcs's, Visual Basic's).
func (m *Module) machine(owner int, method string) string {
	if own := m.text(m.cell(tableTypeDef, owner, 1)); method != "MoveNext" ||
		!strings.HasPrefix(own, "<") && !strings.HasPrefix(own, basicMachine) {
		return ""
	}
	first, end := m.Fields(owner)
	kind := ""
	for f := first; f < min(end, first+maxMachine); f++ {
		switch m.Field(f) {
		case "<>t__builder", "$builder", "$Builder":
			return " (async)"
		case "<>2__current", "$current", "$Current":
			kind = " (iterator)"
		}
	}
	return kind
}

// global is the type that holds a module's global methods.
const global = "<Module>"

// Type returns the name of a type, Namespace.Outer+Inner.
func (m *Module) Type(rid int) string { return m.nested(tableTypeDef, rid, m.enclosing) }

// nested returns the name of a type in a table whose second and third columns have the name and the
// namespace. outer returns the type that contains a nested one, 0 for other types.
func (m *Module) nested(table, rid int, outer func(rid int) int) (name string) {
	for range maxNested {
		own := m.text(m.cell(table, rid, 1))
		if own == "" {
			return name
		}
		if name != "" {
			own += "+" + name
		}
		name = own
		in := outer(rid)
		if in == 0 {
			if space := m.text(m.cell(table, rid, 2)); space != "" {
				return space + "." + name
			}
			return name
		}
		rid = in
	}
	return name
}

// enclosing returns the type that contains a nested type, 0 for other types. The table is sorted by the
// nested type.
func (m *Module) enclosing(rid int) int {
	n := m.table[tableNestedClass].rows
	i := sort.Search(n, func(i int) bool { return m.cell(tableNestedClass, i+1, 0) >= rid })
	if i < n && m.cell(tableNestedClass, i+1, 0) == rid {
		return m.cell(tableNestedClass, i+1, 1)
	}
	return 0
}
