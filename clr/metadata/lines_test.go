package metadata

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestLines(t *testing.T) {
	l := must.Get(ParseLines(clrasm.Lines()))(t)
	if l.ID != [20]byte{1, 2, 3, 19: 9} {
		t.Errorf("id %v", l.ID)
	}
	a, b := "/src/app/A.cs", "/src/gen/B.cs"
	for _, c := range []struct {
		name   string
		method int
		il     uint32
		want   Place
	}{
		{"hidden before all lines", 1, 1, Place{}},
		{"first", 1, 2, Place{a, 70, 9}},
		{"before the next", 1, 8, Place{a, 70, 9}},
		{"above it, of several lines", 1, 9, Place{a, 7, 5}},
		{"hidden: what was before", 1, 205, Place{a, 7, 5}},
		{"two bytes below", 1, 210, Place{a, 9000, 100}},
		{"four bytes below", 1, 1 << 20, Place{a, 400000, 0}},
		{"a method without", 2, 0, Place{}},
		{"two files: first", 3, 4, Place{a, 20, 1}},
		{"second", 3, 5, Place{b, 22, 1}},
		{"hidden in the second", 3, 7, Place{b, 22, 1}},
		{"first again", 3, 8, Place{a, 3, 1}},
		{"no method", 4, 0, Place{}},
		{"row 0", 0, 0, Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := l.Find(c.method, c.il); got != c.want || ok != (c.want.File != "") {
				t.Errorf("%v %v, want %v", got, ok, c.want)
			}
		})
	}
}

// A truncated or modified PDB is refused or read within bounds.
func TestHostileLines(t *testing.T) {
	use := func(b []byte) {
		l, err := ParseLines(b)
		if err != nil {
			return
		}
		for method := range 5 {
			for _, il := range []uint32{0, 9, 1 << 31} {
				if p, ok := l.Find(method, il); ok && (p.Line <= 0 || len(p.File) > 2*maxPath) {
					t.Fatalf("%v", p)
				}
			}
		}
	}
	whole := clrasm.Lines()
	for n := range whole {
		use(whole[:n])
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xc0, 0xff} {
			b := slices.Clone(whole)
			b[n] = v
			use(b)
		}
	}
	if _, err := ParseLines(sample()); err == nil {
		t.Error("a module is no PDB")
	}
}
