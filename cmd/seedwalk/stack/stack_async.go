package stack

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/hang"
	"github.com/seedwalk/seedwalk/sample/paused"
)

// readAsync notes the chains of async methods that threads run or block on.
func (f *stackFlags) readAsync(p *paused.Process) {
	r, err := p.Tasks()
	if err != nil {
		f.asyncWhy = fmt.Sprintf("--async: %v", err)
		return
	}
	f.chains = r.Groups
}

// addAsync adds to each thread the chains that it runs or blocks on.
func (f *stackFlags) addAsync(v *stackView) {
	if f.asyncWhy != "" {
		v.Problems = append(v.Problems, f.asyncWhy)
	}
	for i := range v.Threads {
		t := &v.Threads[i]
		for k := range f.chains {
			g := &f.chains[k]
			switch {
			case !slices.Contains(g.Threads, t.TID):
			case g.Blocks:
				t.Awaits = append(t.Awaits, g.Chain)
			case len(g.Chain) > 1 && t.runs(g.Chain[0]):
				t.Callers = append(t.Callers, g.Chain[1:])
			}
		}
	}
}

// runs reports whether an async method is on the thread's stack. What is left over in a
// stack's unused words may name another.
func (t *stackThread) runs(method string) bool {
	return slices.ContainsFunc(t.Frames,
		func(f stackFrame) bool {
			return strings.TrimSuffix(f.Name, " (async)") == method &&
				f.Name != method
		})
}

// writeAsync writes who awaits what the thread runs, and what the thread waits for.
func (t *stackThread) writeAsync(w io.Writer) {
	for _, chain := range t.Callers {
		fmt.Fprintf(w, "  (%d awaited by: %s)\n", t.TID, strings.Join(hang.Fold(chain), " <- "))
	}
	for _, chain := range t.Awaits {
		fmt.Fprintf(w, "  (%d waits for: %s)\n", t.TID, strings.Join(hang.Fold(chain), " <- "))
	}
}
