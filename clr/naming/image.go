package naming

import (
	"cmp"
	"encoding/binary"
	"unique"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/pe"
)

// image is a managed module in the target's memory.
type image struct {
	text    unique.Handle[string] // the bytes of md, which all processes share
	md      *metadata.Module      // nil: it could not be read
	path    string
	r2r     *precompiled
	head    *header
	pdb     *metadata.Lines // nil: not searched yet, or there is none
	seen    bool            // it has been searched
	at      uint64          // address of the metadata
	emitted bool            // made by Reflection.Emit
}

// parse parses a module's metadata.
func (im *image) parse(data []byte) (*metadata.Module, error) {
	im.text = unique.Make(string(data))
	return metadata.Parse(unsafe.Slice(unsafe.StringData(im.text.Value()), len(data)))
}

// current reports whether the target still has a module's metadata where they were read. It compares
// the version ID, so that it recognizes another module at the same address; without an ID, the first 16
// bytes.
func (n *Images) current(im *image) bool {
	if im.md == nil {
		return false
	}
	const size = 16
	at, text := im.md.ID(), im.text.Value()
	if at == 0 || at+size > len(text) {
		at = 0
	}
	b, ok := n.small(im.at+uint64(at), size)
	return ok && string(b) == text[at:at+size]
}

// named returns a method's names from metadata.
func (im *image) named(rid int) demangle.MethodName {
	d := im.md.Describe(rid)
	return demangle.MethodName{Name: d.Name, TypeArgs: d.TypeArgs, Args: d.Args, Parameters: d.Parameters}
}

// typ returns a type's name, or its C# keyword, or metadata.Canonical.
func (im *image) typ(rid int) string {
	name := im.md.Type(rid)
	if name == "System."+metadata.Canonical {
		return metadata.Canonical
	}
	return cmp.Or(demangle.Keyword(name), name)
}

// header holds the parts of a PE file's headers that lead to its metadata.
type header struct {
	base     uint64
	flat     bool // layout of the file: addresses go through the section table
	sections []pe.Section
	cor      directory
	funcs    directory // RUNTIME_FUNCTIONs
	debug    directory
}

type directory struct{ rva, size uint32 }

// Offsets in the COR header (ECMA-335 II.25.3.3), bounds.
const (
	corSize     = 72
	corMetadata = 8
	corNative   = 64
	maxHeaders  = 1 << 16 // bytes of any one part of a PE file's headers
	maxPath     = 1 << 10
)

// at returns the address of an RVA in memory, or 0.
func (h *header) at(rva uint32) uint64 {
	if !h.flat {
		return h.base + uint64(rva)
	}
	for _, s := range h.sections {
		if rva >= s.RVA && rva-s.RVA < s.Size {
			return h.base + uint64(s.Offset) + uint64(rva-s.RVA)
		}
	}
	return 0
}

// readHeader reads the headers of the module at base. The place of its COR header shows whether it has the
// layout of its file or of a loaded image.
func (n *Images) readHeader(base uint64) (*header, bool) {
	read := func(rva uint32, size int) ([]byte, bool) {
		if size > maxHeaders {
			return nil, false
		}
		return n.bytes(base+uint64(rva), size)
	}
	image, err := pe.ReadHeader(read, "")
	if err != nil {
		return nil, false
	}
	sections, err := image.ReadSections(read, "")
	if err != nil {
		return nil, false
	}
	h := &header{base: base, sections: sections}
	h.cor.rva, h.cor.size = image.CLR()
	h.funcs.rva, h.funcs.size = image.Exceptions()
	h.debug.rva, h.debug.size = image.Debug()
	for _, h.flat = range []bool{false, true} {
		if size, ok := n.u32(h.at(h.cor.rva)); ok && size == corSize && h.cor.rva != 0 {
			return h, true
		}
	}
	return nil, false
}

func directoryAt(b []byte) directory {
	return directory{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
}

// load reads the module at base: its metadata, and its precompiled methods. The result is never nil;
// its md is nil if the metadata cannot be read.
func (n *Images) load(base uint64, path string) *image {
	im := &image{path: path}
	h, ok := n.readHeader(base)
	if !ok {
		return im
	}
	cor, ok := n.bytes(h.at(h.cor.rva), corSize)
	if !ok {
		return im
	}
	md := directoryAt(cor[corMetadata:])
	if md.size > metadata.MaxSize {
		return im
	}
	data, ok := n.bytes(h.at(md.rva), int(md.size))
	if !ok {
		return im
	}
	m, err := im.parse(data)
	if err != nil {
		return im
	}
	im.md, im.head, im.at = m, h, h.at(md.rva)
	if im.path == "" {
		im.path = m.Assembly()
	}
	if native := directoryAt(cor[corNative:]); n.native && native.rva != 0 && !h.flat {
		im.r2r = n.readPrecompiled(h, native)
	}
	return im
}
