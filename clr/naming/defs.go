package naming

import "github.com/seedwalk/seedwalk/clr/metadata"

// TypeDef is the definition of a type in metadata.
type TypeDef struct {
	Name        string // Namespace.Outer+Inner`1
	Module      string // path or name of its assembly
	First, Last int    // rows [First, Last) of its fields
	md          *metadata.Module
}

// Field returns the name of a row of fields.
func (d *TypeDef) Field(rid int) string { return d.md.Field(rid) }

// TypeDef returns the definition of a MethodTable's type; false for arrays and unreadable types.
func (n *Names) TypeDef(table uint64) (d TypeDef, ok bool) {
	im, rid := n.def(table)
	if im == nil {
		return d, false
	}
	d = TypeDef{Name: im.md.Type(rid), Module: im.path, md: im.md}
	d.First, d.Last = im.md.Fields(rid)
	return d, d.Name != ""
}

// def returns the image and the row of a MethodTable's type. The image is nil for an array, and if it or the
// row cannot be read.
func (n *Names) def(table uint64) (im *image, rid int) {
	flags, ok := n.u32(table + n.inst.tableFlags)
	rid, ok1 := n.rowOf(table)
	module, ok2 := n.word(table + n.l.typeModule)
	if !n.inst.ok || !ok || !ok1 || !ok2 || flags&hasComponents != 0 && flags&ifArrayMask == categoryArray {
		return nil, 0
	}
	if im = n.module(module); im == nil || im.md == nil {
		return nil, 0
	}
	return im, rid
}

// TypeOf returns the name of a TypeHandle's type in source form, "" if it cannot be read.
func (n *Names) TypeOf(handle uint64) string {
	n.left = maxTypesNamed
	return n.typeName(handle, 0)
}

// LastArg returns the TypeHandle of a MethodTable's last type argument, 0 if it has none.
func (n *Names) LastArg(table uint64) uint64 {
	dict, count := n.dictionary(table)
	if count == 0 {
		return 0
	}
	handle, _ := n.word(dict + 8*uint64(count-1))
	return handle
}

// Resumed returns the name of a state machine's method, as on the stack of a thread that runs it; "" if the
// type is not a state machine.
func (n *Names) Resumed(table uint64) string {
	im, rid := n.def(table)
	if im == nil {
		return ""
	}
	next := im.md.MethodNamed(rid, "MoveNext")
	if next == 0 {
		return ""
	}
	name := im.named(next)
	n.left = maxTypesNamed
	if args := n.tableArgs(table, 0); len(args) > 0 && len(args) == len(name.TypeArgs) {
		name.TypeArgs = metadata.Unshared(args, name.TypeArgs)
	}
	return name.Readable()
}
