package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// inlinedSamples is how many samples of inlined methods TestInlined compares.
const inlinedSamples = 5000

// Methods that the JIT compiler inlined are separate frames with their lines, if the runtime keeps these
// data. If not, their time is their caller's.
func TestInlined(t *testing.T) {
	dir := tempdir.New(t)
	for _, c := range []struct {
		name   string
		option []string
		ms     int
		most   []string
	}{
		{"kept", []string{"--inlines"}, inlinedSamples * 5 / 4, []string{"Inlined.Sum (inlined) < Inlined.Once", "Inlined.Divide (inlined) < Inlined.Middle (inlined) < Inlined.Twice", "Inlined.None"}},
		{"not-kept", nil, 300, []string{"Inlined.Once", "Inlined.Twice", "Inlined.None"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(dir, c.name+".json")
			argv := append([]string{tool(t), "record", "--rate", "999", "--output", out}, c.option...)
			r := run(t, 5*time.Minute, []string{"DOTNET_TieredCompilation=0"}, append(append(argv, "--"), app(t, "Inlined", fmt.Sprint(c.ms))...)...)
			if r.code != 0 || r.stdout != "INLINED DONE\n" {
				t.Fatalf("%d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if named := strings.Contains(r.stderr, "record --inlines"); named == (c.option != nil) {
				t.Errorf("the summary names --inlines: %v", named)
			}
			seen := judgeInlined(t, readLined(t, out))
			t.Log(seen)
			judged, outside := 0, seen["outside of loops"]
			for _, chain := range c.most {
				judged += seen[chain]
			}
			for chain, n := range seen {
				if !slices.Contains(c.most, chain) && chain != "outside of loops" {
					outside += n
				}
			}
			if judged*1000 < c.ms*800 || outside*100 > judged {
				t.Errorf("%d samples are right, %d are not or in no loop", judged, outside)
			}
		})
	}
}

// loops are the lines of the loop of each method.
var loops = map[string][]int{"Inlined.Sum (inlined)": {15, 16}, "Inlined.Divide (inlined)": {24, 25}, "Inlined.None": {53, 54}}

// calls is the caller of each method, and the line of the call.
var calls = map[string]string{"Inlined.Sum (inlined)": "Inlined.Once:39", "Inlined.Divide (inlined)": "Inlined.Middle (inlined):33", "Inlined.Middle (inlined)": "Inlined.Twice:46"}

// judgeInlined counts samples by their methods below Main, and checks each chain.
func judgeInlined(t *testing.T, p linedProfile) map[string]int {
	seen := map[string]int{}
	for _, s := range p.Stacks {
		var names []string
		var lines []int
		for _, i := range s.Frames {
			if f := &p.Frames[i]; strings.HasPrefix(f.Name, "Inlined.") && f.Name != "Inlined.Main" {
				names, lines = append(names, f.Name), append(lines, f.Line)
			}
		}
		if len(names) == 0 {
			continue
		}
		if loop := loops[names[0]]; loop != nil && !slices.Contains(loop, lines[0]) {
			seen["outside of loops"] += s.Count
		}
		seen[strings.Join(names, " < ")] += s.Count
		for i, name := range names {
			if want := calls[name]; want != "" && (i+1 == len(names) || fmt.Sprintf("%s:%d", names[i+1], lines[i+1]) != want) {
				t.Errorf("%d samples: %v at %v, want %s below %s", s.Count, names, lines, want, name)
			}
		}
	}
	return seen
}
