package naming

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/clr/metadata"
)

// Entries of the debug directory (dotnet/runtime docs/design/specs/PE-COFF.md).
const (
	debugEntry    = 28
	maxDebug      = 64
	debugCodeView = 2
	debugEmbedded = 17
	codeViewGUID  = 4
	codeViewPath  = 24
	maxCodeView   = codeViewPath + maxPath
	maxPDB        = 64 << 20 // bytes, of a file or unpacked
)

// symbols identifies a module's Portable PDB.
type symbols struct {
	id       [20]byte
	path     string // as written by the compiler, or ""
	embedded directory
}

// Place returns the source position of an offset in the IL of a method row of the module at base. ok is false
// if the module has no Portable PDB of the same build, or the PDB has no position for the offset.
func (n *Images) Place(base uint64, rid int, il uint32) (p metadata.Place, ok bool) {
	return n.place(n.image(base, ""), rid, il)
}

// HasLines reports whether the module at base has a Portable PDB.
func (n *Images) HasLines(base uint64) bool { return n.pdb(n.image(base, "")) != nil }

// Lined reports whether a MethodDesc's module has a Portable PDB.
func (n *Names) Lined(desc uint64) bool {
	im, _, _ := n.row(desc)
	return im != nil && n.pdb(im) != nil
}

// DescPlace is Place for a MethodDesc's method.
func (n *Names) DescPlace(desc uint64, il uint32) (p metadata.Place, ok bool) {
	im, rid, _ := n.row(desc)
	if im == nil {
		return p, false
	}
	return n.place(im, rid, il)
}

func (n *Images) place(im *image, rid int, il uint32) (p metadata.Place, ok bool) {
	pdb := n.pdb(im)
	if pdb == nil {
		return p, false
	}
	return pdb.Find(rid, il)
}

func (n *Images) pdb(im *image) *metadata.Lines {
	if !im.seen {
		im.seen, im.pdb = true, n.lines(im)
	}
	return im.pdb
}

// lines reads the Portable PDB of a module: embedded, next to the module, or where the compiler wrote
// it. It ignores a file of another build, and returns nil without any.
func (n *Images) lines(im *image) *metadata.Lines {
	if im.head == nil {
		return nil
	}
	s := n.symbols(im.head)
	if data := n.unpack(im.head, s.embedded); data != nil {
		if l, err := metadata.ParseLines(data); err == nil {
			return l
		}
	}
	if n.File == nil || s.path == "" {
		return nil
	}
	for _, path := range besides(n.pathOf(im), s.path) {
		data, err := n.File(path, maxPDB)
		if err != nil {
			continue
		}
		if l, err := metadata.ParseLines(data); err == nil && l.ID == s.id {
			return l
		}
	}
	return nil
}

// pathOf returns the path of a module, or its name if the path is unknown.
func (n *Images) pathOf(im *image) string {
	if n.Path != nil && !strings.ContainsAny(im.path, `/\`) {
		if path := n.Path(im.head.base); path != "" {
			return path
		}
	}
	return im.path
}

// besides returns the paths where a module's PDB may be.
func besides(module, pdb string) (out []string) {
	if at := strings.LastIndexAny(module, `/\`); at >= 0 {
		out = append(out, module[:at+1]+pdb[strings.LastIndexAny(pdb, `/\`)+1:])
		if dot := strings.LastIndexByte(module, '.'); dot > at {
			out = append(out, module[:dot]+".pdb")
		}
	}
	return append(out, pdb)
}

// symbols reads the debug directory.
func (n *Images) symbols(h *header) (s symbols) {
	table, ok := n.bytes(h.at(h.debug.rva), int(min(h.debug.size, maxDebug*debugEntry)))
	if !ok || h.debug.rva == 0 {
		return s
	}
	for ; len(table) >= debugEntry; table = table[debugEntry:] {
		le := binary.LittleEndian
		at := directory{le.Uint32(table[20:]), le.Uint32(table[16:])}
		switch le.Uint32(table[12:]) {
		case debugCodeView:
			n.codeView(&s, h, at, table[4:8])
		case debugEmbedded:
			s.embedded = at
		}
	}
	return s
}

// codeView reads the PDB's identity, which is a GUID and the entry's stamp, and its path. The first
// entry counts.
func (n *Images) codeView(s *symbols, h *header, at directory, stamp []byte) {
	b, ok := n.bytes(h.at(at.rva), int(min(at.size, maxCodeView)))
	if !ok || len(b) <= codeViewPath || string(b[:4]) != "RSDS" || s.path != "" {
		return
	}
	copy(s.id[:], b[codeViewGUID:codeViewGUID+16])
	copy(s.id[16:], stamp)
	path := b[codeViewPath:]
	if end := bytes.IndexByte(path, 0); end >= 0 {
		s.path = string(path[:end])
	}
}

// unpack returns a PDB embedded in a module (a mark, its size, and its DEFLATE data), or nil.
func (n *Images) unpack(h *header, at directory) []byte {
	if at.rva == 0 || at.size < 8 || at.size > maxPDB {
		return nil
	}
	b, ok := n.bytes(h.at(at.rva), int(at.size))
	if !ok || string(b[:4]) != "MPDB" {
		return nil
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > maxPDB {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[8:])), int64(size)))
	if err != nil || len(data) != int(size) {
		return nil
	}
	return data
}
