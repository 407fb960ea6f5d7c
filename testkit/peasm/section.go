package peasm

import "encoding/binary"

var le = binary.LittleEndian

// Section is a part of an image, written from its first byte to its last. It refers to other places by their
// labels, which are valid in the whole image.
type Section struct {
	Name    string
	RVA     uint32
	Flags   uint32 // 0 = code that can be read
	Virtual uint32 // its size in memory; 0 = that of its bytes

	b      []byte
	labels map[string]uint32 // to RVAs
	fixes  []fix
}

// fix is a word to which the RVA of a label is added.
type fix struct {
	at    int
	label string
}

// NewSection begins a section.
func NewSection(name string, rva uint32) *Section {
	return &Section{Name: name, RVA: rva, labels: map[string]uint32{}}
}

// Raw is a section of bytes, which the caller may still change.
func Raw(name string, rva uint32, data []byte) *Section {
	s := NewSection(name, rva)
	s.b = data
	return s
}

// Data is what was written; the labels' RVAs are not filled in yet.
func (s *Section) Data() []byte { return s.b }

// Here is the RVA of the next byte.
func (s *Section) Here() uint32 { return s.RVA + uint32(len(s.b)) }

// Label names the place of the next byte.
func (s *Section) Label(name string) *Section { s.labels[name] = s.Here(); return s }

// Bytes appends bytes.
func (s *Section) Bytes(b ...byte) *Section { s.b = append(s.b, b...); return s }

// U16 appends 16-bit words.
func (s *Section) U16(v ...uint16) *Section {
	for _, x := range v {
		s.b = le.AppendUint16(s.b, x)
	}
	return s
}

// U32 appends 32-bit words.
func (s *Section) U32(v ...uint32) *Section {
	for _, x := range v {
		s.b = le.AppendUint32(s.b, x)
	}
	return s
}

// AtLabel appends the RVAs of labels, which may come later.
func (s *Section) AtLabel(labels ...string) *Section {
	for _, l := range labels {
		s.fixes = append(s.fixes, fix{len(s.b), l})
		s.U32(0)
	}
	return s
}

// Text appends a string that ends in a zero.
func (s *Section) Text(t string) *Section { s.b = append(append(s.b, t...), 0); return s }

// Zero appends zeros.
func (s *Section) Zero(n int) *Section { s.b = append(s.b, make([]byte, n)...); return s }

// Align appends zeros until the next byte's RVA is a multiple of n.
func (s *Section) Align(n uint32) *Section {
	for s.Here()%n != 0 {
		s.b = append(s.b, 0)
	}
	return s
}

// Goto appends zeros up to an RVA that is not behind the next byte.
func (s *Section) Goto(rva uint32) *Section { return s.Zero(int(rva - s.Here())) }

func (s *Section) virtual() uint32 {
	if s.Virtual != 0 {
		return s.Virtual
	}
	return uint32(len(s.b))
}
