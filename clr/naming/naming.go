// Package naming names the methods of a .NET runtime from its own structures, in the memory of another
// process.
//
// Sources: dotnet/runtime docs/design/datacontracts (RuntimeTypeSystem.md, Loader.md, EcmaMetadata.md),
// src/coreclr/inc/readytorun.h, src/coreclr/vm/nativeformatreader.h; ECMA-335.
//
// Glossary. A *MethodDesc* is the runtime's description of a method; it is in a *chunk* of one MethodTable's
// methods. Precompiled code is found by the start of its code instead, because its image maps that to a row
// of metadata.
//
// Strategy. Offsets come from the descriptor, which .NET 9 and later publish. For .NET 8, package contract
// assumes one. Metadata and the tables of precompiled images are read once. The runtime reuses the addresses
// of unloaded modules and of dynamic methods at once. So for volatile code (see contract.Method) Volatile
// checks that cached metadata are still those of the module. The metadata of a module made by Reflection.Emit
// are those that the runtime saves in memory for debuggers each time it loads a type.
//
// Known gaps: methods of composite images, and instantiations over another module's generic methods, have no
// name. Precompiled code lacks its type arguments if one of them is another module's type.
package naming

import (
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/context/memory"
)

// layout holds offsets in addition to those of contract.MethodDescs.
type layout struct {
	typeModule, dynamicName     uint64
	modulePath                  uint64 // 0: unknown, as in .NET 8
	saved, savedSize, savedData uint64 // of a module made by Reflection.Emit; 0: unknown
}

// Names names the methods of one runtime. It only reads the process's memory. Samplers, dumps, and `stack`
// call it for each new method. It is not safe for concurrent use.
type Names struct {
	*Images
	l       layout
	descs   *contract.MethodDescs
	inst    instances
	modules map[uint64]*image // by the runtime's Module
	left    int               // types that may still be named in the current name
}

// New returns the names of the runtime that d describes. The error is a *contract.Error.
func New(r memory.Reader, d *contract.Descriptor) (*Names, error) {
	images := NewImages(r)
	images.native = true
	return Over(images, d)
}

// Over is New without names of precompiled code, over shared images.
func Over(images *Images, d *contract.Descriptor) (*Names, error) {
	n := &Names{Images: images, inst: readInstances(d), modules: map[uint64]*image{}}
	var err error
	if n.descs, err = contract.NewMethodDescs(images.r, d); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"MethodTable", "Module", &n.l.typeModule},
		{"DynamicMethodDesc", "MethodName", &n.l.dynamicName},
	} {
		off, ok := d.Offset(f.typ, f.field)
		if !ok {
			return nil, &contract.Error{Structure: "contract descriptor",
				Msg: "no field " + f.typ + "." + f.field}
		}
		*f.to = uint64(off)
	}
	path, _ := d.Offset("Module", "Path")
	n.l.modulePath = uint64(path)
	saved, _ := d.Offset("Module", "DynamicMetadata")
	size, _ := d.Offset("DynamicMetadata", "Size")
	data, _ := d.Offset("DynamicMetadata", "Data")
	n.l.saved, n.l.savedSize, n.l.savedData = uint64(saved), uint64(size), uint64(data)
	return n, nil
}

// Method is a method's name.
type Method struct {
	demangle.MethodName
	Module  string // path or name of its assembly
	Dynamic bool   // has no metadata: an IL stub or a dynamic method
}

// Kinds of MethodDesc (src/coreclr/vm/method.hpp, MethodClassification).
const (
	kindMask    = 7
	kindDynamic = 7
)

// Desc names the method of a MethodDesc. ok is false if the method has no name or cannot be read. If only its
// type arguments cannot be read, the name has the type parameters instead.
func (n *Names) Desc(desc uint64) (Method, bool) {
	flags, ok := n.descs.Flags(desc)
	if !ok {
		return Method{}, false
	}
	if flags&kindMask == kindDynamic {
		return n.dynamic(desc)
	}
	im, rid, table := n.row(desc)
	if im == nil || im.md == nil {
		return Method{}, false
	}
	name := im.named(rid)
	n.instantiated(&name, desc, table, flags)
	return Method{MethodName: name, Module: im.path}, name.Name != ""
}

// Volatile is Desc for volatile code, whose module may have been replaced by another at its addresses.
func (n *Names) Volatile(desc uint64) (Method, bool) {
	n.verify = true
	defer func() { n.verify = false }()
	return n.Desc(desc)
}

// row returns the image with a method's metadata, its row there, and its type's MethodTable. im is nil
// for a method without metadata, and if they cannot be read.
func (n *Names) row(desc uint64) (im *image, rid int, table uint64) {
	r, ok := n.descs.Row(desc)
	if !ok || r.Dynamic {
		return nil, 0, 0
	}
	return n.module(r.Module), r.RID, r.Table
}

// dynamic names a method without metadata.
func (n *Names) dynamic(desc uint64) (Method, bool) {
	at, ok := n.word(desc + n.l.dynamicName)
	if !ok || at == 0 {
		return Method{}, false
	}
	name := n.text(at)
	return Method{MethodName: demangle.MethodName{Name: name}, Dynamic: true}, name != ""
}

// module returns the image of a Module of the runtime.
func (n *Names) module(module uint64) *image {
	im, known := n.modules[module]
	if known && !im.emitted && !n.verify {
		return im
	}
	base, ok := n.descs.Base(module)
	switch {
	case !ok:
		return n.emitted(module)
	case known && im.head != nil && im.head.base == base && n.current(im):
		return im
	}
	path := ""
	if at, ok := n.word(module + n.l.modulePath); ok && at != 0 && n.l.modulePath != 0 {
		path = n.wide(at)
	}
	im = n.image(base, path)
	n.modules[module] = im
	return im
}

// emitted returns the image of a module made by Reflection.Emit, nil if its metadata cannot be read.
func (n *Names) emitted(module uint64) *image {
	at, ok := n.word(module + n.l.saved)
	if n.l.saved == 0 || !ok || at == 0 {
		return nil
	}
	size, ok := n.u32(at + n.l.savedSize)
	if !ok || size > metadata.MaxSize {
		return nil
	}
	at += n.l.savedData
	if im := n.modules[module]; im != nil && im.at == at && len(im.text.Value()) == int(size) &&
		n.current(im) {
		return im
	}
	data, ok := n.bytes(at, int(size))
	if !ok {
		return nil
	}
	im := &image{at: at, emitted: true}
	md, err := im.parse(data)
	if err != nil {
		return nil
	}
	im.md, im.path = md, md.Assembly()
	n.modules[module] = im
	return im
}

// Precompiled names the precompiled method at ip in the image at base. begin is the address of its
// code, which identifies it. The name is empty for a method of another module. ok is false if the image
// has no method at or before ip.
func (n *Names) Precompiled(base, ip uint64) (m Method, begin uint64, ok bool) {
	im := n.image(base, "")
	if im.r2r == nil {
		return Method{}, 0, false
	}
	begin, s, ok := im.r2r.find(ip)
	if !ok {
		return Method{}, 0, false
	}
	m.Module = im.path
	if s.rid != 0 {
		m.MethodName = im.named(int(s.rid))
		im.over(&m.MethodName, im.r2r.over[s.over.at:][:s.over.size])
	}
	return m, begin, true
}
