package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// deepKind is what Deep.Next calls at a level of a descent.
func deepKind(n, descent int) string {
	return []string{"Deep.Generic", "Deep.Generic", "Deep.Lambda", "Deep.Native"}[(uint32(n)+
		uint32(descent)<<20)*2654435761>>27&3]
}

// deepJudge looks for a descent of the program that has the frames of one stack. It compares them from
// Deep.Root to the leaf, or to the first gap. It returns the number of levels, or -1 if no descent has them.
func deepJudge(names []string, levels int) int {
	var kinds []string
	for i, name := range names[:len(names)-1] {
		if strings.Contains(name, merge.GapLimit.String()) {
			break
		}
		next := names[i+1]
		if name == "Deep.Next" && strings.HasPrefix(next, "Deep.") && next != "Deep.Leaf" {
			kinds = append(kinds, strings.Split(next, "<")[0])
		}
	}
	for descent := range 8 {
		i := 0
		for i < len(kinds) && i < levels && kinds[i] == deepKind(levels-i, descent) {
			i++
		}
		if i == len(kinds) {
			return i
		}
	}
	return -1
}

// Stacks of megabytes reach the program's first method. Their frames are those of one descent of the program,
// unless they are marked as doubtful. Callers above the copy are sure if the thread waits.
func TestDeepStacks(t *testing.T) {
	for _, c := range []struct {
		name, flags, leaf string
		levels            int
		rooted            float64 // least share of samples
		sure              bool
	}{
		{"runs", "--events cpu", "run", 8000, 0.7, false},
		{"waits", "--events wall", "wait", 30000, 0.7, true},
		{"more frames than a stack may have", "--events cpu", "run", 20000, 0.7, false},
		{"descends all the time", "--events cpu", "turn", 8000, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(t, c.flags, app(t, "Deep", "2", fmt.Sprint(c.levels), c.leaf)...)
			all, rooted, doubtful, wrong, deepest := 0, 0, 0, 0, 0
			for i := range r.Stacks {
				names, n := r.stackNames(i), int(r.Stacks[i].Count)
				if len(names) < 1000 {
					continue
				}
				slices.Reverse(names)
				all += n
				root := slices.Index(names, "Deep.Root")
				if root < 0 {
					continue
				}
				rooted += n
				isDoubtful := func(f int) bool { return r.Frames[f].Doubtful }
				marked := slices.ContainsFunc(r.Stacks[i].Frames, isDoubtful)
				if marked {
					doubtful += n
				}
				levels := deepJudge(names[root:], c.levels)
				if deepest = max(deepest, levels); levels < 0 {
					wrong += n
					expect.True(t, marked, "a stack of %d frames is wrong and not marked", len(names))
				}
			}
			if all == 0 {
				t.Skip("SKIPPED-CHECK: the machine took no sample of a deep stack")
			}
			expect.Figures(t, float64(rooted) >= c.rooted*float64(all) && wrong*20 <= all+20,
				"%d samples: %d to the root, %d doubtful, %d of them wrong; up to %d levels", all, rooted,
				doubtful, wrong, deepest)
			if c.sure {
				expect.True(t, doubtful*2 <= rooted && wrong == 0,
					"%d doubtful and %d wrong stacks of a waiting thread", doubtful, wrong)
			}
		})
	}
}
