package metadata

import (
	"strings"
	"unicode/utf8"
)

// Lines is the debugging metadata of one module: a Portable PDB. It is immutable.
type Lines struct {
	m *Module
	// ID identifies the module's build in the module: a GUID and a stamp.
	ID [20]byte
}

// Place is the source position of an instruction.
type Place struct {
	File         string
	Line, Column int
}

// Bounds of one method's data.
const (
	maxPoints  = 1 << 16
	maxParts   = 64       // of a document's name
	maxPath    = 1 << 12  // bytes of it
	maxOffset  = 1 << 29  // of IL, and lines
	hiddenLine = 0xfeefee // Portable PDB, "hidden sequence point"
)

// ParseLines reads the headers of a Portable PDB.
func ParseLines(b []byte) (*Lines, error) {
	m, err := Parse(b)
	if err != nil {
		return nil, err
	}
	if len(m.pdb) < 20 {
		return nil, &Error{"#Pdb", uint64(len(m.pdb)), "not a Portable PDB"}
	}
	l := &Lines{m: m}
	copy(l.ID[:], m.pdb)
	return l, nil
}

// point is the current sequence point.
type point struct {
	il, line, column int64
	document         uint32
}

// Find returns the source position of an IL offset of a method: that of the last sequence point at or before
// it that is not hidden, like the runtime's own stack traces.
func (l *Lines) Find(method int, il uint32) (p Place, ok bool) {
	document := l.m.cell(tableMethodDebug, method, 0)
	s := decoder{b: l.m.blob(l.m.cell(tableMethodDebug, method, 1))}
	if len(s.b) == 0 {
		return p, false
	}
	s.number() // signature of the local variables
	now := point{document: uint32(document)}
	if document == 0 {
		now.document = s.number()
	}
	var best point
	for n := 0; n < maxPoints && s.at < uint64(len(s.b)); n++ {
		hidden := s.point(&now, n == 0)
		if s.err != nil || now.il > int64(il) {
			break
		}
		if !hidden {
			best = now
		}
	}
	if best.line == 0 || best.document == 0 {
		return p, false
	}
	p = Place{l.document(int(best.document)), int(best.line), int(best.column)}
	return p, p.File != ""
}

// point reads one record: it advances p, or changes its document, which counts as hidden. Lines are relative
// to the last point that was not hidden; line 0 means none.
func (s *decoder) point(p *point, first bool) (hidden bool) {
	delta := s.number()
	if delta == 0 && !first {
		p.document = s.number()
		return true
	}
	p.il += int64(delta)
	lines, columns := s.number(), int32(0)
	if lines == 0 {
		columns = int32(s.number())
	} else {
		columns = s.signed()
	}
	if lines == 0 && columns == 0 {
		return true
	}
	if p.line == 0 {
		p.line, p.column = int64(s.number()), int64(s.number())
	} else {
		p.line, p.column = p.line+int64(s.signed()), p.column+int64(s.signed())
	}
	if p.il >= maxOffset || p.line <= 0 || p.line >= maxOffset || p.column < 0 || p.column > 0xffff {
		s.fail("a sequence point out of range")
	}
	return p.line == hiddenLine
}

// signed reads a compressed signed integer (II.23.2): the sign is the lowest bit, and the missing bits above
// are filled according to the width.
func (s *decoder) signed() int32 {
	at := s.at
	v := s.number()
	n := int32(v >> 1)
	if v&1 == 0 {
		return n
	}
	switch s.at - at {
	case 1:
		return n - 1<<6
	case 2:
		return n - 1<<13
	}
	return n - 1<<28
}

// document returns a file's name, which is stored as parts and a separator.
func (l *Lines) document(rid int) string {
	b := l.m.blob(l.m.cell(tableDocument, rid, 0))
	separator, size := utf8.DecodeRune(b)
	if size == 0 || separator == utf8.RuneError {
		return ""
	}
	s := decoder{b: b, at: uint64(size)}
	var out strings.Builder
	for n := 0; n < maxParts && s.at < uint64(len(b)) && out.Len() < maxPath; n++ {
		if n > 0 && separator != 0 {
			out.WriteRune(separator)
		}
		part := l.m.blob(int(s.number()))
		if s.err != nil {
			return ""
		}
		out.Write(part[:min(len(part), maxPath)])
	}
	return out.String()
}
