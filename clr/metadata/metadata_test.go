package metadata

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// sample is metadata with types and methods. nested lists pairs of a nested type and its enclosing one; by
// default, type 3 is in type 2.
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
	want := []string{"", "global", "Some.Space.Outer::.ctor", "Some.Space.Outer::Run",
		"Some.Space.Outer+Inner::Deep", "Last::End", ""}
	expect.Slices(t, got, want)
}

// The name of a type that contains itself is finite.
func TestNestedRound(t *testing.T) {
	m := must.Get(Parse(sample([2]int{2, 3}, [2]int{3, 2})))(t)
	name := m.Type(2)
	expect.True(t, len(name) <= maxNested*8, "%d bytes", len(name))
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

func TestDescribe(t *testing.T) {
	m := must.Get(Parse(clrasm.Overloads()))(t)
	for rid, want := range []string{"", "Put(TItem)", "Put(StringBuilder, int?)", "Own<TKey>(TKey)",
		"Own<TKey,TValue>(TValue)", "Alone", "Run()", "Run(string)",
		"op_Explicit(int): string", "op_Explicit(int): object", "<Run>d__1::MoveNext (async)()",
		"<Run>d__2::MoveNext (async)(string)", "<Gone>d__3::MoveNext (async)", ""} {
		n := m.Describe(rid)
		got := strings.TrimPrefix(strings.TrimPrefix(n.Name, "App.Box`1"), "::")
		if got = strings.TrimPrefix(got, "+"); len(n.Args) > 0 {
			got += "<" + strings.Join(n.Args, ",") + ">"
		}
		got += n.Parameters
		expect.True(t, got == want, "method %d: %q, want %q", rid, got, want)
		if wantArgs := []string{"TItem"}; rid >= 1 && rid <= 9 && !slices.Equal(n.TypeArgs, wantArgs) {
			t.Errorf("method %d: type arguments %q", rid, n.TypeArgs)
		}
	}
}

// Equal names at two places in the heap are the same name.
func TestSameText(t *testing.T) {
	m := &Module{strings: []byte("\x00Run\x00Run\x00Running\x00Ru")}
	for _, c := range []struct {
		a, b int
		want bool
	}{{1, 1, true}, {1, 5, true}, {1, 9, false}, {9, 1, false}, {1, 0, false}, {0, 0, true}, {17, 1, false},
		{1, 17, false}, {1, 99, false}, {-1, 1, false}} {
		expect.Equal(t, m.sameText(c.a, c.b), c.want, "%d and %d", c.a, c.b)
	}
}

// Code shared by reference types has the name of the open method.
func TestUnshared(t *testing.T) {
	for _, c := range []struct{ args, names, want []string }{
		{nil, nil, nil},
		{[]string{"int"}, []string{"TItem"}, []string{"int"}},
		{[]string{"__Canon"}, []string{"TItem"}, []string{"TItem"}},
		{[]string{"int", "__Canon"}, []string{"TKey", "TValue"}, []string{"int", "TValue"}},
		{[]string{"__Canon[]", "__Canon[,]"}, []string{"A", "B"}, []string{"A[]", "B[,]"}},
		{[]string{"__CanonBall"}, []string{"T"}, []string{"__CanonBall"}},
	} {
		given := slices.Clone(c.args)
		expect.Slices(t, Unshared(c.args, c.names), c.want, "%q, %q", given, c.names)
		expect.Slices(t, c.args, given, "changed to")
	}
}

func TestLines(t *testing.T) {
	l := must.Get(ParseLines(clrasm.Lines()))(t)
	expect.Equal(t, l.ID, [20]byte{1, 2, 3, 19: 9}, "id")
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
			got, ok := l.Find(c.method, c.il)
			expect.True(t, got == c.want && ok == (c.want.File != ""), "%v %v, want %v", got, ok, c.want)
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
	_, err := ParseLines(sample())
	expect.True(t, err != nil, "a module is no PDB")
}
