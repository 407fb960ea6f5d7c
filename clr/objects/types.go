package objects

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context/memory"
)

// Type is the type of an object.
type Type struct {
	Table  uint64 // its MethodTable
	Name   string // from metadata, Namespace.Outer+Inner`1; "" for an array
	Module string // path or name of its assembly
	Parent *Type  // nil for types without a base type

	size      uint32 // of an object without components, bytes
	component uint32 // bytes of each component, 0 = none
	fields    []field
}

type field struct {
	name   string
	offset uint32 // from the object's first byte
}

// Size is the size of an object without components, in bytes.
func (t *Type) Size() uint64 { return uint64(t.size) }

// ItemSize is the size of an array's item or of a string's character, in bytes; 0 for other types.
func (t *Type) ItemSize() uint64 { return uint64(t.component) }

// Is reports whether the type or one of its base types has the given name.
func (t *Type) Is(name string) bool {
	for ; t != nil; t = t.Parent {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Field returns the offset of an instance field from the object's first byte, false if neither the type nor a
// base type has it.
func (t *Type) Field(name string) (offset uint64, ok bool) {
	for ; t != nil; t = t.Parent {
		for i := range t.fields {
			if t.fields[i].name == name {
				return uint64(t.fields[i].offset), true
			}
		}
	}
	return 0, false
}

// Span is a part of an object, in bytes from the object's start.
type Span struct{ From, To uint64 }

// Spans returns the matching instance fields of the type itself, each up to the next field.
func (t *Type) Spans(match func(name string) bool) (out []Span) {
	for i := range t.fields {
		from := t.fields[i].offset
		if !match(t.fields[i].name) {
			continue
		}
		to := max(t.size, from)
		for k := range t.fields {
			if o := t.fields[k].offset; o > from {
				to = min(to, o)
			}
		}
		out = append(out, Span{uint64(from), uint64(to)})
	}
	return out
}

// layout holds the offsets that the runtime publishes, and two that .NET 9 does not.
type layout struct {
	flags, baseSize, class, parent  uint64 // MethodTable
	backLink, fieldList, fieldCount uint64 // EEClass
	arrayLength                     uint64
}

// Offsets in EEClass that .NET 10.0.9 publishes. They are the same in 9.0.5, which does not.
const (
	supposedFieldList  = 24
	supposedFieldCount = 50
)

// Bounds.
const (
	maxFields    = 1 << 12
	maxParents   = 32
	maxTypes     = 1 << 20 // MethodTables, and other words
	fieldDesc    = 16      // bytes of a FieldDesc
	objectHeader = 8       // bytes of the MethodTable's address
	maxOffset    = 1 << 20
)

// Types reads the types of one runtime. It is not safe for concurrent use.
type Types struct {
	r     memory.Reader
	names *naming.Names
	l     layout
	known map[uint64]*Type // by MethodTable; nil: not a MethodTable
	buf   [fieldDesc]byte
}

// NewTypes returns a reader that uses the offsets in d. The error is a *contract.Error.
func NewTypes(r memory.Reader, d *contract.Descriptor, names *naming.Names) (*Types, error) {
	t := &Types{r: r, names: names, known: map[uint64]*Type{}}
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"MethodTable", "MTFlags", &t.l.flags}, {"MethodTable", "BaseSize", &t.l.baseSize},
		{"MethodTable", "EEClassOrCanonMT", &t.l.class}, {"MethodTable", "ParentMethodTable", &t.l.parent},
		{"EEClass", "MethodTable", &t.l.backLink}, {"Array", "m_NumComponents", &t.l.arrayLength},
	} {
		off, ok := d.Offset(f.typ, f.field)
		if !ok {
			return nil, &contract.Error{Structure: "contract descriptor",
				Msg: "no field " + f.typ + "." + f.field}
		}
		*f.to = uint64(off)
	}
	t.l.fieldList, t.l.fieldCount = supposedFieldList, supposedFieldCount
	if off, ok := d.Offset("EEClass", "FieldDescList"); ok {
		t.l.fieldList = uint64(off)
	}
	if off, ok := d.Offset("EEClass", "NumInstanceFields"); ok {
		t.l.fieldCount = uint64(off)
	}
	return t, nil
}

// Of returns the type of a MethodTable, nil if table is not one.
func (t *Types) Of(table uint64) *Type { return t.of(table, 0) }

func (t *Types) of(table uint64, depth int) *Type {
	if table&7 != 0 || table < 1<<16 || depth > maxParents {
		return nil
	}
	typ, ok := t.known[table]
	if !ok {
		if len(t.known) >= maxTypes {
			clear(t.known)
		}
		typ = t.read(table, depth)
		t.known[table] = typ
	}
	return typ
}

// Bits of MethodTable.MTFlags (RuntimeTypeSystem.md).
const (
	hasComponents = 0x80000000
	sizeMask      = 0xffff
)

// The MethodTable of freed memory has components of one byte and no class (gcenv.ee.cpp,
// g_pFreeObjectMethodTable).
const (
	freeFlags = hasComponents | 1
	freeSize  = 24
)

// read reads a type. It returns nil if the class of table does not refer back to it, or if its base
// type cannot be read.
func (t *Types) read(table uint64, depth int) *Type {
	canonical, class, ok := t.class(table)
	flags, ok1 := t.u32(table + t.l.flags)
	size, ok2 := t.u32(table + t.l.baseSize)
	if free := ok1 && ok2 && !ok && flags == freeFlags && size == freeSize; free {
		return &Type{Table: table, size: size, component: 1}
	}
	if !ok || !ok1 || !ok2 || size < 16 || size&7 != 0 && flags&hasComponents == 0 {
		return nil
	}
	typ := &Type{Table: table, size: size}
	if flags&hasComponents != 0 {
		typ.component = flags & sizeMask
	}
	def, named := t.names.TypeDef(table)
	typ.Name, typ.Module = def.Name, def.Module
	parent, _ := t.word(table + t.l.parent)
	inherited := uint16(0)
	if parent != 0 {
		if typ.Parent = t.of(parent, depth+1); typ.Parent == nil {
			return nil
		}
		_, above, _ := t.class(parent)
		inherited, _ = t.u16(above + t.l.fieldCount)
	}
	if all, ok := t.u16(class + t.l.fieldCount); ok && named && all >= inherited {
		t.readFields(typ, &def, canonical, class, int(all-inherited))
	}
	return typ
}

// class returns a MethodTable's class, and the MethodTable that it belongs to.
func (t *Types) class(table uint64) (canonical, class uint64, ok bool) {
	class, ok = t.word(table + t.l.class)
	canonical = table
	if ok && class&1 != 0 { // the canonical instantiation has it
		canonical = class &^ 1
		class, ok = t.word(canonical + t.l.class)
	}
	if !ok || class&7 != 0 || class == 0 {
		return 0, 0, false
	}
	back, ok := t.word(class + t.l.backLink)
	return canonical, class, ok && back == canonical
}

// readFields reads a type's own instance fields. If one is not a row of the type, the type has none.
func (t *Types) readFields(typ *Type, def *naming.TypeDef, canonical, class uint64, count int) {
	list, ok := t.word(class + t.l.fieldList)
	if !ok || count > maxFields {
		return
	}
	for i := range uint64(count) {
		b := t.buf[:]
		if !t.r.ReadAt(b, list+i*fieldDesc) || binary.LittleEndian.Uint64(b) != canonical {
			typ.fields = nil
			return
		}
		bits, place := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
		rid, static, offset := int(bits&(1<<24-1)), bits>>24&1, place&(1<<27-1)
		if static != 0 || rid < def.First || rid >= def.Last || offset > maxOffset {
			typ.fields = nil
			return
		}
		typ.fields = append(typ.fields, field{def.Field(rid), offset + objectHeader})
	}
}

func (t *Types) word(addr uint64) (uint64, bool) {
	b := t.buf[:8]
	ok := addr >= 4096 && addr < 1<<63 && t.r.ReadAt(b, addr)
	return binary.LittleEndian.Uint64(b), ok
}

func (t *Types) u32(addr uint64) (uint32, bool) {
	b := t.buf[:4]
	ok := addr >= 4096 && addr < 1<<63 && t.r.ReadAt(b, addr)
	return binary.LittleEndian.Uint32(b), ok
}

func (t *Types) u16(addr uint64) (uint16, bool) {
	b := t.buf[:2]
	ok := addr >= 4096 && addr < 1<<63 && t.r.ReadAt(b, addr)
	return binary.LittleEndian.Uint16(b), ok
}
