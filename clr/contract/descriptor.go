package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Error is a structure of a runtime that cannot be used, and the reason.
type Error struct {
	Structure string
	Addr      uint64 // where the structure was read, 0 if unknown
	Value     uint64 // the value that caused the error
	Msg       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s at %#x: %s (value %#x)", e.Structure, e.Addr, e.Msg, e.Value)
}

// maxDescriptor bounds a descriptor's text; that of .NET 10 has 10.5 KB.
const maxDescriptor = 1 << 20

// maxOffset bounds a field's offset and a type's size.
const maxOffset = 1 << 20

// Descriptor is a parsed contract descriptor (data_descriptor.md): offsets of fields by type, global values,
// versions of contracts.
type Descriptor struct {
	Types     map[string]map[string]uint32 // field to offset; "!" is the size
	Globals   map[string]Global
	Contracts map[string]int // -1 for a version that is not a number

	toBase []uint64 // offsets of further links from Module.Base to the image (.NET 8)
}

// Global is a literal, or the index of a word of pointer_data that holds the address of a runtime variable.
type Global struct {
	Indirect bool
	Value    uint64
}

type rawDescriptor struct {
	Version, Types, Globals json.RawMessage
	Contracts               map[string]json.RawMessage
}

// ParseDescriptor parses a descriptor's JSON text, which Open and OpenPE find in memory. The text may contain
// comments, and commas before closing brackets. Types and globals have the compact or the regular format. A
// string may contain a number. ParseDescriptor skips fields with unknown values. Later code checks the fields
// that it needs by name. Errors are of type *Error.
func ParseDescriptor(text []byte) (*Descriptor, error) {
	if len(text) > maxDescriptor {
		return nil, &Error{"contract descriptor", 0, uint64(len(text)), "text is too long"}
	}
	var raw rawDescriptor
	if err := json.Unmarshal(plainJSON(text), &raw); err != nil {
		return nil, &Error{"contract descriptor", 0, uint64(len(text)), err.Error()}
	}
	if v, ok := number(raw.Version); raw.Version != nil && (!ok || v != 0) {
		return nil, &Error{"contract descriptor", 0, v, "unknown format version"}
	}
	d := &Descriptor{Types: map[string]map[string]uint32{},
		Globals: map[string]Global{}, Contracts: map[string]int{}}
	if err := errors.Join(d.addTypes(raw.Types), d.addGlobals(raw.Globals)); err != nil {
		return nil, &Error{"contract descriptor", 0, uint64(len(text)), err.Error()}
	}
	for name, v := range raw.Contracts {
		d.Contracts[name] = -1
		if n, ok := number(v); ok && n <= math.MaxInt32 {
			d.Contracts[name] = int(n)
		}
	}
	return d, nil
}

// entry is a type, a field, or a global in the regular format.
type entry struct {
	Name                string
	Size, Offset, Value json.RawMessage
	Fields              []entry
}

// entries parses a part of a descriptor: compact, if it is an object, else the entries of the regular format.
func entries(v json.RawMessage, compact any) (list []entry, err error) {
	switch {
	case len(v) == 0:
		return nil, nil
	case v[0] == '[':
		err = json.Unmarshal(v, &list)
		return list, err
	}
	return nil, json.Unmarshal(v, compact)
}

func (d *Descriptor) addTypes(v json.RawMessage) error {
	var compact map[string]map[string]json.RawMessage
	list, err := entries(v, &compact)
	for _, t := range list {
		fields := map[string]json.RawMessage{"!": t.Size}
		for _, f := range t.Fields {
			fields[f.Name] = f.Offset
		}
		d.addType(t.Name, fields)
	}
	for name, fields := range compact {
		d.addType(name, fields)
	}
	return err
}

func (d *Descriptor) addType(name string, fields map[string]json.RawMessage) {
	t := map[string]uint32{}
	for field, v := range fields {
		if off, ok := offsetOf(v); ok {
			t[field] = off
		}
	}
	d.Types[name] = t
}

func (d *Descriptor) addGlobals(v json.RawMessage) error {
	compact := map[string]json.RawMessage{}
	list, err := entries(v, &compact)
	for _, g := range list {
		compact[g.Name] = g.Value
	}
	for name, v := range compact {
		if g, ok := globalOf(v); ok {
			d.Globals[name] = g
		}
	}
	return err
}

// offsetOf parses offset or [offset, "type"].
func offsetOf(v json.RawMessage) (uint32, bool) {
	var pair []json.RawMessage
	if json.Unmarshal(v, &pair) == nil && len(pair) > 0 {
		v = pair[0]
	}
	n, ok := number(v)
	return uint32(n), ok && n <= maxOffset
}

// globalOf parses value, [value, "type"], [index] or [[index], "type"].
func globalOf(v json.RawMessage) (Global, bool) {
	var pair, index []json.RawMessage
	g := Global{}
	if json.Unmarshal(v, &pair) == nil && len(pair) > 0 {
		v, g.Indirect = pair[0], len(pair) == 1
		if json.Unmarshal(v, &index) == nil && len(index) == 1 {
			v, g.Indirect = index[0], true
		}
	}
	n, ok := number(v)
	g.Value = n
	return g, ok
}

// number parses an integer, or a string that contains one: signed, decimal or hexadecimal.
func number(v json.RawMessage) (uint64, bool) {
	text := string(v)
	var quoted string
	if json.Unmarshal(v, &quoted) == nil {
		text = quoted
	}
	digits, negative := strings.CutPrefix(text, "-")
	base := 10
	if len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		digits, base = digits[2:], 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

// plainJSON returns a copy of text with blanks instead of comments, and of commas before a closing bracket.
// It stops at a comment without an end: the text is no JSON, and a search for the end at each "/*" would
// take quadratic time.
func plainJSON(text []byte) []byte {
	out := bytes.Clone(text)
	comma := -1 // where the last comma is, if only blanks and comments follow it
	for i, n := 0, 0; i < len(out); i += n {
		n = 1
		switch c := out[i]; c {
		case '"':
			n, comma = stringSize(out[i:]), -1
		case '/':
			end, ok := commentSize(out[i:])
			if !ok {
				return out
			}
			n = max(end, 1)
			copy(out[i:], bytes.Repeat([]byte{' '}, end))
		case ',':
			comma = i
		case ']', '}':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case ' ', '\t', '\r', '\n':
		default:
			comma = -1
		}
	}
	return out
}

// stringSize is the size of the string at the start of b, with its quotes.
func stringSize(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// commentSize is the size of the comment at the start of b, 0 if b starts with none. ok is false if the
// comment has no end.
func commentSize(b []byte) (n int, ok bool) {
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			return end, true
		}
		return len(b), true
	case bytes.HasPrefix(b, []byte("/*")):
		end := bytes.Index(b[2:], []byte("*/"))
		return end + 4, end >= 0
	}
	return 0, true
}

// Offset returns the offset of a type's field, false if the descriptor has none.
func (d *Descriptor) Offset(typ, field string) (uint32, bool) {
	off, ok := d.Types[typ][field]
	return off, ok
}

// Descriptor returns the runtime's description of its own structures.
func (t *Tables) Descriptor() *Descriptor { return t.desc }

// Global returns the address of a variable of the runtime that the descriptor names.
func (t *Tables) Global(name string) (uint64, bool) {
	g, ok := t.desc.Globals[name]
	if !ok || !g.Indirect || g.Value >= uint64(len(t.pointers)) {
		return 0, false
	}
	return t.pointers[g.Value], true
}
