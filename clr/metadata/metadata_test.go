package metadata

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// sample has types and methods, two of them nested; nested replaces that relation.
func sample(nested ...[2]int) []byte {
	m := clrasm.New()
	m.Method("global", nil)
	m.Type("Outer", "Some.Space")
	m.Method(".ctor", nil)
	m.Method("Run", nil)
	m.Type("Inner", "")
	m.Method("Deep", nil)
	m.Type("Empty", "Some.Space")
	m.Type("Last", "")
	m.Method("End", nil)
	if nested == nil {
		nested = [][2]int{{3, 2}}
	}
	for _, n := range nested {
		m.Nested(n[0], n[1])
	}
	return m.Bytes()
}

func TestNames(t *testing.T) {
	m := must.Get(Parse(sample()))(t)
	var got []string
	for rid := range m.table[tableMethodDef].rows + 2 {
		got = append(got, m.Method(rid))
	}
	want := []string{"", "global", "Some.Space.Outer::.ctor", "Some.Space.Outer::Run", "Some.Space.Outer+Inner::Deep", "Last::End", ""}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The name of a type that contains itself is finite.
func TestNestedRound(t *testing.T) {
	m := must.Get(Parse(sample([2]int{2, 3}, [2]int{3, 2})))(t)
	if name := m.Type(2); len(name) > maxNested*8 {
		t.Errorf("%d bytes", len(name))
	}
}

// Truncated or modified metadata is refused or read within bounds.
func TestHostile(t *testing.T) {
	use := func(b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		for rid := range min(m.table[tableMethodDef].rows, 64) + 2 {
			m.Describe(rid)
			m.Type(rid)
		}
		m.Assembly()
	}
	for _, whole := range [][]byte{sample(), clrasm.Overloads()} {
		for n := range whole {
			use(whole[:n])
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				b := slices.Clone(whole)
				b[n] = v
				use(b)
			}
		}
	}
}
