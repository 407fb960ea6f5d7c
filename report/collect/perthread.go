package collect

import (
	"maps"
	"slices"

	"github.com/seedwalk/seedwalk/report/export"
)

// perThread describes how often threads were sampled, if the engine did not count it. Threads without samples
// do not count.
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
	n := slices.Sorted(maps.Values(counts))
	return []string{samplesPerThread(n[0], n[len(n)/2], n[len(n)-1])}
}
