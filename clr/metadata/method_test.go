package metadata

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestDescribe(t *testing.T) {
	m := must.Get(Parse(clrasm.Overloads()))(t)
	for rid, want := range []string{"", "Put(TItem)", "Put(StringBuilder, int?)", "Own<TKey>(TKey)", "Own<TKey,TValue>(TValue)", "Alone", "Run()", "Run(string)",
		"op_Explicit(int): string", "op_Explicit(int): object", "<Run>d__1::MoveNext (async)()", "<Run>d__2::MoveNext (async)(string)", "<Gone>d__3::MoveNext (async)", ""} {
		n := m.Describe(rid)
		got := strings.TrimPrefix(strings.TrimPrefix(n.Name, "App.Box`1"), "::")
		if got = strings.TrimPrefix(got, "+"); len(n.Args) > 0 {
			got += "<" + strings.Join(n.Args, ",") + ">"
		}
		if got += n.Parameters; got != want {
			t.Errorf("method %d: %q, want %q", rid, got, want)
		}
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
	}{{1, 1, true}, {1, 5, true}, {1, 9, false}, {9, 1, false}, {1, 0, false}, {0, 0, true}, {17, 1, false}, {1, 17, false}, {1, 99, false}, {-1, 1, false}} {
		if got := m.sameText(c.a, c.b); got != c.want {
			t.Errorf("%d and %d: %v", c.a, c.b, got)
		}
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
		{[]string{"__Canon"}, nil, []string{"T"}},
		{[]string{"__Canon", "int", "__Canon"}, nil, []string{"T1", "int", "T3"}},
		{[]string{"__Canon", "int"}, []string{"of another"}, []string{"T1", "int"}},
		{[]string{"__CanonBall"}, []string{"T"}, []string{"__CanonBall"}},
	} {
		given := slices.Clone(c.args)
		if got := Unshared(c.args, c.names); !slices.Equal(got, c.want) {
			t.Errorf("%q, %q: %q, want %q", given, c.names, got, c.want)
		}
		if !slices.Equal(c.args, given) {
			t.Errorf("%q: changed to %q", given, c.args)
		}
	}
}
