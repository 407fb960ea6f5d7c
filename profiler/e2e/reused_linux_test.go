package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// The runtime frees dynamic methods and collectible assemblies, and gives their addresses to other code at
// once. Each method has its own name and its own CPU time in the profile all the same. The program measures
// the truth with the clock of its thread.
func TestReusedCode(t *testing.T) {
	r := record(t, "--rate 499", need(t, "out", "bin", "swhost"), runtime9(t), need(t, "out", "samples", "Reused.exe"), "10", "40")
	seen := map[string]float64{}
	for i := range r.Stacks {
		names := r.stackNames(i)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			seen[strings.TrimSuffix(name, ".Run")] += float64(r.Stacks[i].CPU) / 1e6
		}
	}
	count := 0
	for line := range strings.Lines(r.stdout) {
		var name string
		var ms float64
		if n, _ := fmt.Sscan(line, &name, &ms); n < 2 {
			continue
		}
		count++
		t.Logf("%s: %.0f ms, in the profile %.0f ms", name, ms, seen[name])
		if math.Abs(seen[name]-ms) > ms/3 {
			t.Errorf("%s used %.0f ms; the profile shows %.0f ms", name, ms, seen[name])
		}
	}
	if count != 9 {
		t.Errorf("%d methods, want 9; %s", count, r.stderr)
	}
}
