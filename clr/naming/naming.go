// Package naming names the methods of a .NET runtime from its own structures, in
// the memory of another process.
//
// Sources: dotnet/runtime docs/design/datacontracts (RuntimeTypeSystem.md,
// Loader.md, EcmaMetadata.md), src/coreclr/inc/readytorun.h,
// src/coreclr/vm/nativeformatreader.h; ECMA-335.
//
// Glossary. A *MethodDesc* is the runtime's method; it lies in a *chunk* of one
// MethodTable's methods. Precompiled code is found by where it begins instead,
// since its image says which row of the metadata it is of.
//
// Strategy. Offsets are the descriptor's, of which .NET 9 and later publish these.
// Metadata and the tables of precompiled images are read once. Every name is kept;
// the owner of a Names drops it when methods may have been unloaded.
//
// Known gaps: methods of composite images, and instantiations over another module's
// generic methods, have no name; of precompiled code it is not told what types it is
// instantiated over if one of them is another module's.
package naming

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/memory"
)

// layout are the offsets used.
type layout struct {
	chunkIndex, flags, remainder      uint64 // MethodDesc
	chunkSize, chunkTable, chunkRange uint64 // MethodDescChunk
	typeModule                        uint64 // MethodTable
	moduleBase, modulePath            uint64
	dynamicName                       uint64
	tokenBits, alignment              uint64
}

// Names names the methods of one runtime. It is not safe for concurrent use.
type Names struct {
	r       memory.Reader
	l       layout
	inst    instances
	modules map[uint64]*image // by the runtime's Module
	images  map[uint64]*image // by base
	buf     [64]byte
}

// New returns the names of the runtime that d describes.
func New(r memory.Reader, d *contract.Descriptor) (*Names, error) {
	n := &Names{r: r, inst: readInstances(d), modules: map[uint64]*image{}, images: map[uint64]*image{}}
	n.l.tokenBits, n.l.alignment = 12, 8
	if g, ok := d.Globals["MethodDescTokenRemainderBitCount"]; ok && !g.Indirect && g.Value < 24 {
		n.l.tokenBits = g.Value
	}
	if g, ok := d.Globals["MethodDescAlignment"]; ok && !g.Indirect && g.Value <= 64 {
		n.l.alignment = g.Value
	}
	for _, f := range []struct {
		typ, field string
		to         *uint64
	}{
		{"MethodDesc", "ChunkIndex", &n.l.chunkIndex}, {"MethodDesc", "Flags", &n.l.flags},
		{"MethodDesc", "Flags3AndTokenRemainder", &n.l.remainder}, {"MethodDescChunk", "!", &n.l.chunkSize},
		{"MethodDescChunk", "MethodTable", &n.l.chunkTable}, {"MethodDescChunk", "FlagsAndTokenRange", &n.l.chunkRange},
		{"MethodTable", "Module", &n.l.typeModule}, {"Module", "Base", &n.l.moduleBase}, {"Module", "Path", &n.l.modulePath},
		{"DynamicMethodDesc", "MethodName", &n.l.dynamicName},
	} {
		off, ok := d.Offset(f.typ, f.field)
		if !ok {
			return nil, &contract.Error{Structure: "contract descriptor", Msg: "no field " + f.typ + "." + f.field}
		}
		*f.to = uint64(off)
	}
	return n, nil
}

// Method is a method's name.
type Method struct {
	clr.MethodName
	Module  string // path or name of its assembly
	Dynamic bool   // without metadata: an IL stub or a dynamic method
}

// Kinds of MethodDesc (src/coreclr/vm/method.hpp, MethodClassification).
const (
	kindMask    = 7
	kindDynamic = 7
)

// Desc names the method of a MethodDesc.
func (n *Names) Desc(desc uint64) (Method, bool) {
	flags, ok1 := n.u16(desc + n.l.flags)
	index, ok2 := n.u16(desc + n.l.chunkIndex)
	remainder, ok3 := n.u16(desc + n.l.remainder)
	if !ok1 || !ok2 || !ok3 || desc == 0 {
		return Method{}, false
	}
	if flags&kindMask == kindDynamic {
		return n.dynamic(desc)
	}
	chunk := desc - n.l.chunkSize - uint64(index&0xff)*n.l.alignment
	bits, ok := n.u16(chunk + n.l.chunkRange)
	table, ok1 := n.word(chunk + n.l.chunkTable)
	if !ok || !ok1 {
		return Method{}, false
	}
	module, ok := n.word(table + n.l.typeModule)
	if !ok || table == 0 {
		return Method{}, false
	}
	mask := uint64(1)<<n.l.tokenBits - 1
	rid := uint64(bits)&(1<<(24-n.l.tokenBits)-1)<<n.l.tokenBits | uint64(remainder)&mask
	im := n.module(module)
	if im == nil || im.md == nil {
		return Method{}, false
	}
	name := n.named(im, int(rid))
	n.instantiated(&name, desc, table, flags)
	return Method{MethodName: name, Module: im.path}, name.Name != ""
}

// named is what metadata says of a method.
func (n *Names) named(im *image, rid int) clr.MethodName {
	d := im.md.Describe(rid)
	return clr.MethodName{Name: d.Name, TypeArgs: d.TypeArgs, Args: d.Args, Parameters: d.Parameters}
}

// dynamic names a method without metadata.
func (n *Names) dynamic(desc uint64) (Method, bool) {
	at, ok := n.word(desc + n.l.dynamicName)
	if !ok || at == 0 {
		return Method{}, false
	}
	name := n.text(at)
	return Method{MethodName: clr.MethodName{Name: name}, Dynamic: true}, name != ""
}

// module is the image of a Module of the runtime.
func (n *Names) module(module uint64) *image {
	if im, ok := n.modules[module]; ok {
		return im
	}
	base, ok := n.word(module + n.l.moduleBase)
	if !ok || base == 0 {
		return nil
	}
	path := ""
	if at, ok := n.word(module + n.l.modulePath); ok && at != 0 {
		path = n.wide(at)
	}
	im := n.image(base, path)
	n.modules[module] = im
	return im
}

func (n *Names) image(base uint64, path string) *image {
	im, ok := n.images[base]
	if !ok {
		im = n.load(base, path)
		n.images[base] = im
	}
	if im.path == "" {
		im.path = path
	}
	return im
}

// Precompiled names the method of precompiled code at ip, in the image at base:
// where the method begins is its identity.
func (n *Names) Precompiled(base, ip uint64) (m Method, begin uint64, ok bool) {
	im := n.image(base, "")
	if im.r2r == nil {
		return Method{}, 0, false
	}
	begin, rid, ok := im.r2r.find(ip)
	if !ok {
		return Method{}, 0, false
	}
	m.Module = im.path
	if rid != 0 {
		m.MethodName = n.named(im, int(rid))
	}
	return m, begin, true
}

func (n *Names) bytes(addr uint64, size int) ([]byte, bool) {
	if size < 0 || addr == 0 || addr+uint64(size) < addr {
		return nil, false
	}
	b := make([]byte, size)
	return b, n.r.ReadAt(b, addr)
}

func (n *Names) small(addr uint64, size int) ([]byte, bool) {
	b := n.buf[:size]
	return b, addr != 0 && addr+8 > addr && n.r.ReadAt(b, addr)
}

func (n *Names) word(addr uint64) (uint64, bool) {
	b, ok := n.small(addr, 8)
	return binary.LittleEndian.Uint64(b), ok
}

func (n *Names) u32(addr uint64) (uint32, bool) {
	b, ok := n.small(addr, 4)
	return binary.LittleEndian.Uint32(b), ok
}

func (n *Names) u16(addr uint64) (uint16, bool) {
	b, ok := n.small(addr, 2)
	return binary.LittleEndian.Uint16(b), ok
}

// text reads a string that ends with 0, piece by piece: it may end at the end of
// a mapping.
func (n *Names) text(addr uint64) string {
	var out []byte
	for len(out) < maxPath {
		size := int(min(64, 64-addr&63))
		b, ok := n.small(addr, size)
		if !ok {
			return string(out)
		}
		for _, c := range b {
			if c == 0 {
				return string(out)
			}
			out = append(out, c)
		}
		addr += uint64(size)
	}
	return string(out)
}

// wide reads a string of UTF-16, of which paths here use the first 256 letters.
func (n *Names) wide(addr uint64) string {
	var out []rune
	for len(out) < maxPath {
		c, ok := n.u16(addr)
		if !ok || c == 0 {
			break
		}
		out = append(out, rune(c))
		addr += 2
	}
	return string(out)
}
