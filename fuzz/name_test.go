package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr/demangle"
)

// A name may hold anything: none stops the program, and what comes out is no longer
// than what a few type parameters for each arity make of it.
func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"", "App+clo@12-3::Invoke", "A+_Closure$__5-0::_Lambda$__0", "<StartupCode$A>.$B+c@1-2T`1::X-IY`1-Z", "A.B+<>c.<M>b__0_0", "<<<>>>d::MoveNext (async)", "+::`9", "A`1.<", "..::..", "<-.->d::MoveNext (iterator)", "D::A.IMap<B.C,D[]>.get_Item"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := demangle.Name(s); len(got) > 32*len(s)+32 {
			t.Errorf("%d bytes of %d", len(got), len(s))
		}
	})
}
