package naming

import (
	"strings"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
)

// instances are the offsets that lead to type arguments. A runtime may not publish all of them: then the
// names in metadata are used.
type instances struct {
	ok                               bool
	tableFlags, tableFlags2          uint64 // MethodTable
	perInst, class                   uint64
	dictArgs                         uint64 // GenericsDictInfo
	methodDict, methodFlags, ownArgs uint64 // InstantiatedMethodDesc
	descKind, descArg                uint64 // TypeDesc, ParamTypeDesc
	element, rank                    uint64 // EEClass, ArrayClass
	rowShift                         uint   // bits of MTFlags2 below the type's row
}

func readInstances(d *contract.Descriptor) (l instances) {
	l.ok = true
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"MethodTable", "MTFlags", &l.tableFlags}, {"MethodTable", "MTFlags2", &l.tableFlags2},
		{"MethodTable", "PerInstInfo", &l.perInst}, {"MethodTable", "EEClassOrCanonMT", &l.class},
		{"GenericsDictInfo", "NumTypeArgs", &l.dictArgs},
		{"InstantiatedMethodDesc", "PerInstInfo", &l.methodDict},
		{"InstantiatedMethodDesc", "Flags2", &l.methodFlags},
		{"InstantiatedMethodDesc", "NumGenericArgs", &l.ownArgs},
		{"TypeDesc", "TypeAndFlags", &l.descKind}, {"ParamTypeDesc", "TypeArg", &l.descArg},
		{"EEClass", "InternalCorElementType", &l.element}, {"ArrayClass", "Rank", &l.rank},
	} {
		off, ok := d.Offset(f.typ, f.field)
		l.ok = l.ok && ok
		*f.to = uint64(off)
	}
	l.rowShift = 8
	if off, ok := d.Offset("MethodTable", "Token"); ok {
		l.rowShift = uint(uint64(off)-l.tableFlags2) * 8
	}
	return l
}

// rowOf returns the row of a MethodTable's type in metadata. ok is false if it cannot be read.
func (n *Names) rowOf(table uint64) (rid int, ok bool) {
	flags2, ok := n.u32(table + n.inst.tableFlags2)
	rid = int(flags2 >> n.inst.rowShift)
	const elsewhere = 0xffff // .NET 8 keeps larger rows in another place
	return rid, ok && (n.inst.rowShift <= 8 || rid != elsewhere)
}

// Bits of MethodTable.MTFlags (RuntimeTypeSystem.md).
const (
	hasComponents  = 0x80000000
	genericsMask   = 0x30 // for tables without components
	categoryMask   = 0x000f0000
	categoryArray  = 0x00080000
	ifArrayMask    = 0x000c0000
	szArray        = 0x000a0000
	kindInstance   = 5 // MethodDesc: InstantiatedMethodDesc
	instancesMask  = 7 // its Flags2
	genericItself  = 0 // a definition, whose arguments are its parameters
	maxTypeArgs    = 32
	maxTypeNesting = 8
	maxTypesNamed  = 256 // in one method's name: nested types may share theirs
)

// instantiated replaces the names of type parameters by type arguments.
func (n *Names) instantiated(m *demangle.MethodName, desc, table uint64, flags uint16) {
	if !n.inst.ok {
		return
	}
	n.left = maxTypesNamed
	if args := n.tableArgs(table, 0); len(args) > 0 && len(args) == len(m.TypeArgs) {
		m.TypeArgs = metadata.Unshared(args, m.TypeArgs)
	}
	if flags&kindMask != kindInstance || len(m.Args) == 0 {
		return
	}
	kind, ok := n.u16(desc + n.inst.methodFlags)
	count, ok1 := n.u16(desc + n.inst.ownArgs)
	dict, ok2 := n.word(desc + n.inst.methodDict)
	if !ok || !ok1 || !ok2 || kind&instancesMask == genericItself || int(count) != len(m.Args) {
		return
	}
	if args := n.args(dict, int(count), 0); args != nil {
		m.Args = metadata.Unshared(args, m.Args)
	}
}

// tableArgs returns the type arguments of a MethodTable, including those of its enclosing types; nil if
// one has no name.
func (n *Names) tableArgs(table uint64, depth int) []string {
	dict, count := n.dictionary(table)
	if count == 0 {
		return nil
	}
	return n.args(dict, count, depth)
}

// dictionary returns the address and number of a MethodTable's type arguments; 0 if it has none, or
// they cannot be read.
func (n *Names) dictionary(table uint64) (at uint64, args int) {
	flags, ok := n.u32(table + n.inst.tableFlags)
	perInst, ok1 := n.word(table + n.inst.perInst)
	if !ok || !ok1 || perInst < dictInfo || flags&hasComponents != 0 || flags&genericsMask == 0 {
		return 0, 0
	}
	count, ok := n.u16(perInst - dictInfo + n.inst.dictArgs)
	dicts, ok1 := n.u16(perInst - dictInfo + dictCount)
	if !ok || !ok1 || count == 0 || count > maxTypeArgs || dicts == 0 || dicts > maxTypeArgs {
		return 0, 0
	}
	// Its own dictionary is the last one; those before belong to its base types.
	at, ok = n.word(perInst + 8*uint64(dicts-1))
	if !ok {
		return 0, 0
	}
	return at, int(count)
}

// dictInfo is the size of a GenericsDictInfo, which ends at the address in PerInstInfo. dictCount is the
// offset of the number of dictionaries in it, which .NET 9 does not publish.
const (
	dictInfo  = 8
	dictCount = 4
)

// args names the types at the start of a dictionary; nil if one has no name.
func (n *Names) args(dict uint64, count, depth int) []string {
	if dict == 0 || count > maxTypeArgs || depth > maxTypeNesting {
		return nil
	}
	var out []string
	for i := range count {
		handle, ok := n.word(dict + 8*uint64(i))
		name := ""
		if ok {
			name = n.typeName(handle, depth+1)
		}
		if name == "" {
			return nil
		}
		out = append(out, name)
	}
	return out
}

// typeName names the type of a TypeHandle: a MethodTable, or a TypeDesc, which is tagged.
func (n *Names) typeName(handle uint64, depth int) string {
	if n.left--; depth > maxTypeNesting || n.left < 0 {
		return ""
	}
	if handle&3 == 2 {
		return n.typeDesc(handle&^3, depth)
	}
	flags, ok := n.u32(handle + n.inst.tableFlags)
	if !ok {
		return ""
	}
	if flags&hasComponents != 0 && flags&ifArrayMask == categoryArray {
		return n.arrayName(handle, flags, depth)
	}
	module, ok := n.word(handle + n.l.typeModule)
	rid, ok1 := n.rowOf(handle)
	if !ok || !ok1 {
		return ""
	}
	im := n.module(module)
	if im == nil || im.md == nil {
		return ""
	}
	return metadata.TypeName(im.typ(rid), n.tableArgs(handle, depth))
}

// arrayName names an array. Its element type is in the place of other types' dictionaries.
func (n *Names) arrayName(table uint64, flags uint32, depth int) string {
	element, ok := n.word(table + n.inst.perInst)
	if !ok {
		return ""
	}
	of := n.typeName(element, depth+1)
	if of == "" || flags&categoryMask == szArray {
		return join(of, "[]")
	}
	class, ok := n.word(table + n.inst.class)
	if ok && class&1 != 0 { // the canonical table has it
		class, ok = n.word(class&^1 + n.inst.class)
	}
	rank, ok1 := n.small(class+n.inst.rank, 1)
	if !ok || !ok1 || rank[0] == 0 || rank[0] > 32 {
		return ""
	}
	return join(of, "["+strings.Repeat(",", int(rank[0])-1)+"]")
}

// typeDesc names a pointer, a reference, or a function pointer; "" for other types.
func (n *Names) typeDesc(desc uint64, depth int) string {
	kind, ok := n.u32(desc + n.inst.descKind)
	if !ok {
		return ""
	}
	arg, ok := n.word(desc + n.inst.descArg)
	if !ok {
		return ""
	}
	switch kind & 0xff {
	case 0x0f:
		return join(n.typeName(arg, depth+1), "*")
	case 0x10:
		return join(n.typeName(arg, depth+1), "&")
	case 0x1b:
		return "delegate*"
	}
	return ""
}

// join appends behind to name; it returns "" if name is "".
func join(name, behind string) string {
	if name == "" {
		return ""
	}
	return name + behind
}
