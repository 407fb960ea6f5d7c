package demangle

import (
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// testdata/names.txt has names from real compilers: the input is testdata/names.cs, names.vb, and names.fs.
func TestName(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/names.txt"))(t)
	n := 0
	for _, line := range strings.Split(string(b), "\n") {
		in, want, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		n++
		expect.Equal(t, Name(in), want, "Name(%q)", in)
	}
	expect.True(t, n >= 200, "%d names", n)
	expect.Equal(t, Name(""), "", "no name")
}

// The runtime's events name a method as Type.Method, with the type arguments in brackets.
func TestEventName(t *testing.T) {
	for in, want := range map[string]string{
		"Waits+<RunExample>c__AnonStorey8.<>m__2":                     "Waits.RunExample (lambda 2)",
		"System.Collections.Generic.List`1[System.__Canon].Add":       "System.Collections.Generic.List<T>.Add",
		"App.Box`2[System.Int32,System.Collections.List`1[A.B]].Open": "App.Box<T1,T2>.Open",
		"App.Box`1[System.Int32].App.IFoo<T[]>.Bar":                   "App.Box<T>.IFoo<T[]>.Bar",
		"App.Box`1[System.Int32[]].Open":                              "App.Box<T>.Open",
		"App.Main":                                                    "App.Main",
	} {
		expect.Equal(t, EventName(in), want, in)
	}
}

// Artificial names cost time and memory in proportion to their length.
func TestLongNames(t *testing.T) {
	for _, piece := range []string{"<", ">", "<>", "+", "`9+", "<a>$", "@1", "$", "|", "-I", "A-IA-", ".",
		"<a>g__", "::", "_Closure$__1+"} {
		for _, size := range []int{100, MaxName / len(piece), MaxName} {
			s := strings.Repeat(piece, size)
			got := Name(s)
			expect.True(t, len(got) <= 32*len(s)+32, "%d of %q: %d bytes", size, piece, len(got))
			got = Type(s)
			expect.True(t, len(got) <= 32*len(s)+32, "type of %d %q: %d bytes", size, piece, len(got))
			if len(s) > MaxName && Name(s) != s {
				t.Errorf("%d of %q: read", size, piece)
			}
		}
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct {
		name string
		in   MethodName
		want string
	}{
		{"arguments", MethodName{Name: "A.B`1::C", TypeArgs: []string{"int"}}, "A.B<int>.C"},
		{"of both types", MethodName{Name: "A.B`1+D`2::C", TypeArgs: []string{"int", "string", "E[]"}},
			"A.B<int>.D<string,E[]>.C"},
		{"too few arguments", MethodName{Name: "A.B`1+D`2::C", TypeArgs: []string{"int", "string"}},
			"A.B<int>.D<T1,T2>.C"},
		{"of a type in a generic one",
			MethodName{Name: "A.B`1+D::C", TypeArgs: []string{"int"}}, "A.B<int>.D.C"},
		{"own", MethodName{Name: "A.B::C", Args: []string{"int", "T"}}, "A.B.C<int,T>"},
		{"overload", MethodName{Name: "A.B::C", Parameters: "(int)"}, "A.B.C(int)"},
		{"constructor", MethodName{Name: "A.B`1::.ctor", TypeArgs: []string{"int"}, Parameters: "()"},
			"A.B<int>..ctor()"},
		{"generic overload", MethodName{Name: "A.B::C", Args: []string{"int"}, Parameters: "(T)"},
			"A.B.C<int>(T)"},
		{"async overload", MethodName{Name: "A.B+<Run>d__1::MoveNext (async)", Parameters: "(string)"},
			"A.B.Run(string) (async)"},
		{"generic iterator", MethodName{Name: "A.B`1+<Items>d__1`1::MoveNext (iterator)",
			TypeArgs: []string{"int", "string"}}, "A.B<int>.Items<string> (iterator)"},
		{"lambda in a generic type",
			MethodName{Name: "A`1+<>c__DisplayClass5_0`1::<Run>b__1", TypeArgs: []string{"int", "string"}},
			"A<int>.Run (lambda 1)"},
		{"not a number as arity", MethodName{Name: "A`x::C", TypeArgs: []string{"int"}}, "A<x>.C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, c.in.Readable(), c.want)
		})
	}
}
