package record

import (
	"fmt"
	"slices"

	"github.com/seedwalk/seedwalk/export"
)

// perThread tells how often threads were sampled, where the engine has not counted
// it itself: of the threads that have samples.
func perThread(p *export.Profile) []string {
	counts := map[int]int64{}
	for i := range p.Stacks {
		if s := &p.Stacks[i]; s.Event == export.NoEvent && s.Count > 0 {
			counts[s.Thread] += s.Count
		}
	}
	if len(counts) == 0 {
		return nil
	}
	var n []int64
	for _, c := range counts {
		n = append(n, c)
	}
	slices.Sort(n)
	return []string{fmt.Sprintf("%d to %d samples a thread, median %d", n[0], n[len(n)-1], n[len(n)/2])}
}
