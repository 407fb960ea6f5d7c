package clrasm

import "strings"

// Tables of debugging metadata.
const (
	document    = 0x30
	methodDebug = 0x31
)

// NewLines begins a Portable PDB.
func NewLines(id [20]byte) *Module {
	pdb := append(id[:], make([]byte, 12)...) // no entry point, no tables referred to
	return &Module{strings: []byte{0}, blobs: []byte{0}, rows: map[byte][][]byte{}, pdb: pdb}
}

// Document adds a file, whose name is kept in parts.
func (m *Module) Document(name string) int {
	b := []byte{'/'}
	for _, part := range strings.Split(name, "/") {
		at := uint32(0)
		if part != "" {
			at = uint32(m.blob([]byte(part)))
		}
		b = compressed(b, at)
	}
	return m.row(document, m.blob(b), uint16(0), uint16(0), uint16(0))
}

// Point is a sequence point; Line 0 is a hidden one. It ends on the same line, or Lines below.
type Point struct {
	IL, Line, Column, Document, Lines int
}

// Points adds the next method's row; document 0 says that its points are in several. Without
// points it has none.
func (m *Module) Points(document int, points ...Point) {
	if len(points) == 0 {
		m.row(methodDebug, uint16(0), uint16(0))
		return
	}
	b := compressed(nil, 0) // no local variables
	if document == 0 {
		b = compressed(b, uint32(points[0].Document))
	}
	now, shown := points[0], Point{}
	now.IL = 0
	for i, p := range points {
		if p.Document != now.Document {
			b = compressed(compressed(b, 0), uint32(p.Document))
		}
		if i == 0 {
			now.IL = 0
		}
		b = compressed(b, uint32(p.IL-now.IL))
		now = p
		if p.Line == 0 {
			b = append(b, 0, 0)
			continue
		}
		if b = compressed(b, uint32(p.Lines)); p.Lines == 0 {
			b = compressed(b, 30)
		} else {
			b = signed(b, -3)
		}
		if shown.Line == 0 {
			b = compressed(compressed(b, uint32(p.Line)), uint32(p.Column))
		} else {
			b = signed(signed(b, p.Line-shown.Line), p.Column-shown.Column)
		}
		shown = p
	}
	m.row(methodDebug, uint16(document), m.blob(b))
}

// compressed appends an unsigned integer (II.23.2).
func compressed(b []byte, v uint32) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, 0x80|byte(v>>8), byte(v))
	}
	return append(b, 0xc0|byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// signed appends a signed one: rotated left by one within its width.
func signed(b []byte, v int) []byte {
	for _, w := range []struct {
		bits int
		mark uint32
	}{{6, 0}, {13, 0x8000}, {28, 0xc0000000}} {
		if v < -1<<w.bits || v >= 1<<w.bits {
			continue
		}
		r := uint32(v) << 1 & (1<<(w.bits+1) - 1)
		if v < 0 {
			r |= 1
		}
		switch w.bits {
		case 6:
			return append(b, byte(r))
		case 13:
			return append(b, byte(w.mark>>8)|byte(r>>8), byte(r))
		}
		return append(b, byte(w.mark>>24)|byte(r>>24), byte(r>>16), byte(r>>8), byte(r))
	}
	return b
}

// Lines are the points of three methods: of the first the lines go down and far up, with
// hidden points between; the second has none; the third is in two files.
func Lines() []byte {
	m := NewLines([20]byte{1, 2, 3, 19: 9})
	a, b := m.Document("/src/app/A.cs"), m.Document("/src/gen/B.cs")
	m.Points(a, Point{IL: 0, Document: a}, Point{IL: 2, Line: 70, Column: 9, Document: a},
		Point{IL: 9, Line: 7, Column: 5, Document: a, Lines: 2},
		Point{IL: 200, Document: a}, Point{IL: 210, Line: 9000, Column: 100, Document: a},
		Point{IL: 20000, Line: 400000, Column: 0, Document: a})
	m.Points(a)
	m.Points(0, Point{IL: 0, Line: 20, Column: 1, Document: a},
		Point{IL: 5, Line: 22, Column: 1, Document: b}, Point{IL: 6, Document: b},
		Point{IL: 8, Line: 3, Column: 1, Document: a})
	return m.Bytes()
}
