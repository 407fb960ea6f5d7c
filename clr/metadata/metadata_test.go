package metadata

import (
	"encoding/binary"
	"slices"
	"testing"
)

// made writes metadata with small heaps: types and methods by name, in order.
type made struct {
	strings []byte
	types   [][3]string // name, namespace, first method's row as a rune
	first   []int
	methods []string
	nested  [][2]int
}

func (m *made) text(s string) uint16 {
	if m.strings == nil {
		m.strings = []byte{0}
	}
	at := len(m.strings)
	m.strings = append(append(m.strings, s...), 0)
	return uint16(at)
}

func (m *made) bytes() []byte {
	le := binary.LittleEndian
	var rows []byte
	for i, t := range m.types {
		rows = le.AppendUint32(rows, 0)
		rows = le.AppendUint16(rows, m.text(t[0]))
		rows = le.AppendUint16(rows, m.text(t[1]))
		rows = le.AppendUint16(rows, 0)
		rows = le.AppendUint16(rows, 1)
		rows = le.AppendUint16(rows, uint16(m.first[i]))
	}
	for _, name := range m.methods {
		rows = le.AppendUint32(rows, 0)
		rows = le.AppendUint32(rows, 0)
		rows = le.AppendUint16(rows, m.text(name))
		rows = le.AppendUint16(rows, 0)
		rows = le.AppendUint16(rows, 1)
	}
	for _, n := range m.nested {
		rows = le.AppendUint16(rows, uint16(n[0]))
		rows = le.AppendUint16(rows, uint16(n[1]))
	}
	valid := uint64(1<<tableTypeDef | 1<<tableMethodDef | 1<<tableNestedClass)
	tables := le.AppendUint64(make([]byte, 8), valid)
	tables = le.AppendUint64(tables, 0)
	for _, n := range []int{len(m.types), len(m.methods), len(m.nested)} {
		tables = le.AppendUint32(tables, uint32(n))
	}
	tables = append(tables, rows...)

	out := append([]byte("BSJB"), 1, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 'v', '4', 0, 0, 0, 0, 2, 0)
	const heads = 12 + 20
	at := uint32(len(out) + heads)
	out = le.AppendUint32(out, at)
	out = le.AppendUint32(out, uint32(len(tables)))
	out = append(out, '#', '~', 0, 0)
	out = le.AppendUint32(out, at+uint32(len(tables)))
	out = le.AppendUint32(out, uint32(len(m.strings)))
	out = append(out, "#Strings\x00\x00\x00\x00"...)
	return append(append(out, tables...), m.strings...)
}

func sample() *made {
	return &made{types: [][3]string{{"<Module>", ""}, {"Outer", "Some.Space"}, {"Inner", ""}, {"Empty", "Some.Space"}, {"Last", ""}},
		first: []int{1, 2, 4, 5, 5}, methods: []string{"global", ".ctor", "Run", "Deep", "End"}, nested: [][2]int{{3, 2}}}
}

func TestNames(t *testing.T) {
	m, err := Parse(sample().bytes())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rid := range m.table[tableMethodDef].rows + 2 {
		got = append(got, m.Method(rid))
	}
	want := []string{"", "global", "Some.Space.Outer::.ctor", "Some.Space.Outer::Run", "Some.Space.Outer+Inner::Deep", "Last::End", ""}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A type that is its own outer one ends.
func TestNestedRound(t *testing.T) {
	s := sample()
	s.nested = [][2]int{{2, 3}, {3, 2}}
	m, err := Parse(s.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if name := m.Type(2); len(name) > maxNested*8 {
		t.Errorf("%d bytes", len(name))
	}
}

// Cut or changed anywhere, metadata is refused or read in bounds.
func TestHostile(t *testing.T) {
	whole := sample().bytes()
	use := func(b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		for rid := range min(m.table[tableMethodDef].rows, 64) + 2 {
			m.Method(rid)
			m.Type(rid)
		}
		m.Assembly()
	}
	for n := range whole {
		use(whole[:n])
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := slices.Clone(whole)
			b[n] = v
			use(b)
		}
	}
}
