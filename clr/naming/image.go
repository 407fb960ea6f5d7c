package naming

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/metadata"
)

// image is a managed module in the target's memory.
type image struct {
	md   *metadata.Module // nil: it could not be read
	path string
	r2r  *precompiled
}

// header is what of a PE file's headers leads to its metadata.
type header struct {
	base     uint64
	flat     bool // as in the file: addresses go through the section table
	sections []section
	cor      directory
	funcs    directory // RUNTIME_FUNCTIONs
}

type directory struct{ rva, size uint32 }

type section struct{ rva, size, offset, raw uint32 }

// Offsets (Microsoft, "PE Format"; ECMA-335 II.25.3.3).
const (
	corSize       = 72
	maxSections   = 96
	maxLfanew     = 1 << 16
	magicPE32     = 0x10b
	magicPE32Plus = 0x20b
	dirException  = 3
	dirCLR        = 14
	corMetadata   = 8
	corNative     = 64
	maxPath       = 1 << 10
)

// at is where an RVA stands in memory, 0 if nowhere.
func (h *header) at(rva uint32) uint64 {
	if !h.flat {
		return h.base + uint64(rva)
	}
	for _, s := range h.sections {
		if rva >= s.rva && rva-s.rva < s.raw {
			return h.base + uint64(s.offset) + uint64(rva-s.rva)
		}
	}
	return 0
}

// readHeader reads the headers of the module at base. Whether it lies there as in
// its file or as loaded is known by where its COR header is found.
func (n *Names) readHeader(base uint64) (*header, bool) {
	lfanew, ok := n.u32(base + 0x3c)
	if !ok || lfanew > maxLfanew {
		return nil, false
	}
	pe, ok := n.bytes(base+uint64(lfanew), 24)
	if !ok || string(pe[:4]) != "PE\x00\x00" {
		return nil, false
	}
	count, size := int(binary.LittleEndian.Uint16(pe[6:])), int(binary.LittleEndian.Uint16(pe[20:]))
	opt, ok := n.bytes(base+uint64(lfanew)+24, size)
	if !ok || size < 96 || count > maxSections {
		return nil, false
	}
	at := 112
	switch binary.LittleEndian.Uint16(opt) {
	case magicPE32:
		at = 96
	case magicPE32Plus:
	default:
		return nil, false
	}
	if size < at+8*(dirCLR+1) {
		return nil, false
	}
	h := &header{base: base, cor: directoryAt(opt[at+8*dirCLR:]), funcs: directoryAt(opt[at+8*dirException:])}
	raw, ok := n.bytes(base+uint64(lfanew)+24+uint64(size), 40*count)
	if !ok {
		return nil, false
	}
	for i := range count {
		s := raw[40*i:]
		le := binary.LittleEndian
		h.sections = append(h.sections, section{rva: le.Uint32(s[12:]), size: le.Uint32(s[8:]), raw: le.Uint32(s[16:]), offset: le.Uint32(s[20:])})
	}
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

// load reads the module at base: its metadata, and its precompiled methods.
func (n *Names) load(base uint64, path string) *image {
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
	m, err := metadata.Parse(data)
	if err != nil {
		return im
	}
	im.md = m
	if im.path == "" {
		im.path = m.Assembly()
	}
	if native := directoryAt(cor[corNative:]); native.rva != 0 && !h.flat {
		im.r2r = n.readPrecompiled(h, native)
	}
	return im
}
