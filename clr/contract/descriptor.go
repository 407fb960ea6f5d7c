package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
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

// Descriptor is a parsed contract descriptor in its compact form
// (data_descriptor.md): offsets of fields by type, global values, versions.
type Descriptor struct {
	Types     map[string]map[string]uint32 // field to offset; "!" is the size
	Globals   map[string]Global
	Contracts map[string]int

	toBase []uint64 // offsets of further links from Module.Base to the image (.NET 8)
}

// Global is a literal, or the index of a word of pointer_data that holds the address of a runtime variable.
type Global struct {
	Indirect bool
	Value    uint64
}

type rawDescriptor struct {
	Version   int                                   `json:"version"`
	Types     map[string]map[string]json.RawMessage `json:"types"`
	Globals   map[string]json.RawMessage            `json:"globals"`
	Contracts map[string]int                        `json:"contracts"`
}

// ParseDescriptor parses a descriptor's JSON text, which Open and OpenPE find in memory. It skips fields with
// unknown values. Later code checks the fields that it needs by name. Errors are of type *Error.
func ParseDescriptor(text []byte) (*Descriptor, error) {
	var raw rawDescriptor
	if len(text) > maxDescriptor {
		return nil, &Error{"contract descriptor", 0, uint64(len(text)), "text is too long"}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, &Error{"contract descriptor", 0, uint64(len(text)), err.Error()}
	}
	if raw.Version != 0 {
		return nil, &Error{"contract descriptor", 0, uint64(raw.Version), "unknown format version"}
	}
	d := &Descriptor{Types: map[string]map[string]uint32{},
		Globals: map[string]Global{}, Contracts: raw.Contracts}
	for name, fields := range raw.Types {
		t := map[string]uint32{}
		for field, v := range fields {
			if off, ok := offsetOf(v); ok {
				t[field] = off
			}
		}
		d.Types[name] = t
	}
	for name, v := range raw.Globals {
		if g, ok := globalOf(v); ok {
			d.Globals[name] = g
		}
	}
	return d, nil
}

// offsetOf parses offset or [offset, "type"].
func offsetOf(v json.RawMessage) (uint32, bool) {
	var pair []json.RawMessage
	if json.Unmarshal(v, &pair) == nil && len(pair) > 0 {
		v = pair[0]
	}
	n, err := strconv.ParseUint(string(v), 10, 32)
	return uint32(n), err == nil && n <= maxOffset
}

// globalOf parses value, [value, "type"], [index] or [[index], "type"].
func globalOf(v json.RawMessage) (Global, bool) {
	var pair []json.RawMessage
	if json.Unmarshal(v, &pair) != nil || len(pair) == 0 {
		return literal(v)
	}
	var index []uint64
	if json.Unmarshal(pair[0], &index) == nil && len(index) == 1 {
		return Global{Indirect: true, Value: index[0]}, true
	}
	if len(pair) == 1 {
		g, ok := literal(pair[0])
		g.Indirect = true
		return g, ok
	}
	return literal(pair[0])
}

// literal parses a number or a string that holds one, decimal or hexadecimal.
func literal(v json.RawMessage) (Global, bool) {
	text := string(v)
	var quoted string
	if json.Unmarshal(v, &quoted) == nil {
		text = quoted
	}
	n, err := strconv.ParseUint(text, 0, 64)
	return Global{Value: n}, err == nil
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
