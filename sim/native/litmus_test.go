//go:build linux && amd64

package native

import (
	"slices"
	"testing"
)

// The explorer finds exactly the outcomes that C11 permits, but for load buffering.
func TestLitmus(t *testing.T) {
	const relaxed, release, acquire, seqCst = "__ATOMIC_RELAXED", "__ATOMIC_RELEASE", "__ATOMIC_ACQUIRE", "__ATOMIC_SEQ_CST"
	for _, c := range []struct {
		name, test, stores, loads string
		weak                      string // the outcome that only weak memory has
		has                       bool
		outcomes                  int
		define                    string
	}{
		{"store buffering", "SB", relaxed, relaxed, "0000 x1 y1", true, 4, ""},
		{"store buffering, release", "SB", release, acquire, "0000 x1 y1", true, 4, ""},
		{"store buffering, seq_cst", "SB", seqCst, seqCst, "0000 x1 y1", false, 3, ""},
		{"message passing", "MP", relaxed, relaxed, "1000 x1 y1", true, 4, ""},
		{"message passing, release alone", "MP", release, relaxed, "1000 x1 y1", true, 4, ""},
		{"message passing, acquire alone", "MP", relaxed, acquire, "1000 x1 y1", true, 4, ""},
		{"message passing, release", "MP", release, acquire, "1000 x1 y1", false, 3, ""},
		{"message passing, fence", "MP", relaxed, acquire, "1000 x1 y1", false, 3, "FENCE"},
		{"load buffering (a known gap)", "LB", relaxed, relaxed, "1100 x1 y1", false, 3, ""},
		{"independent reads", "IRIW", relaxed, relaxed, "1010 x1 y1", true, 16, ""},
		{"independent reads, release", "IRIW", release, acquire, "1010 x1 y1", true, 16, ""},
		{"independent reads, seq_cst", "IRIW", seqCst, seqCst, "1010 x1 y1", false, 15, ""},
		{"two stores each", "TWO_TWO_W", relaxed, relaxed, "0000 x1 y1", true, 4, ""},
		{"two stores each, seq_cst", "TWO_TWO_W", seqCst, seqCst, "0000 x1 y1", false, 3, ""},
		{"coherence", "CORR", relaxed, relaxed, "2100 x2 y0", false, 6, ""},
		{"read-modify-write", "RMW", relaxed, relaxed, "0000 x1 y0", false, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world{file: "litmus", defines: []string{"TEST=" + c.test, "ORDER_S=" + c.stores, "ORDER_L=" + c.loads}}
			if c.define != "" {
				w.defines = append(w.defines, c.define)
			}
			r := explore(t, w, "weak", fault{})
			if !r.Whole || r.Failures > 0 || slices.Contains(r.Outcomes, c.weak) != c.has || len(r.Outcomes) != c.outcomes {
				t.Errorf("%v; want %d outcomes, %q among them: %v; got %q", r, c.outcomes, c.weak, c.has, r.Outcomes)
			}
		})
	}
}
