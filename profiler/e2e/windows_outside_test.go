package e2e

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind"
)

var outsideSamples = flag.Int("windows-outside", 200, "how many samples TestWindowsOutside judges")

// maxOutsideRuns limits the runs: in Wine each read of a process stops one of its threads, so a busy machine
// has about ten samples per second.
const maxOutsideRuns = 60

// A program of .NET 10 is sampled without anything of ours in it: each complete stack is possible for its
// thread.
func TestWindowsOutside(t *testing.T) {
	o := outsideRun{gaps: map[merge.Gap]int{}, shapes: newShapes(singleFile)}
	for n := 0; n < maxOutsideRuns && o.total < *outsideSamples; n++ {
		o.run(t)
	}
	t.Logf(".NET 10.0.9 from outside: %d samples, %d complete (%.2f %%); of the %d others %d in Wine's own system calls; managed top %d; gaps %v; stacks as their threads call %v",
		o.total, o.whole, percent(o.whole, o.total), o.total-o.whole, o.wine, o.managed, o.gaps, o.stacks)
	judged := 0
	for _, n := range o.stacks {
		judged += n
	}
	if o.total < *outsideSamples || judged != o.whole {
		t.Errorf("%d samples, want %d; %d of %d complete stacks were judged", o.total, *outsideSamples, judged, o.whole)
	}
	if o.whole*1000 < (o.total-o.wine)*985 {
		t.Errorf("only %d of %d stacks are complete: %v", o.whole, o.total, o.gaps)
	}
}

// outsideRun is the sum of several recordings.
type outsideRun struct {
	total, whole, managed, wine int
	gaps                        map[merge.Gap]int
	*shapes
}

func (o *outsideRun) run(t *testing.T) {
	t.Helper()
	samples, rd, res := recordSingle(t, 1, nil, []string{"--mode", "probe"})
	o.ran(t, res)
	o.judge(t, samples, rd)
	t.Logf("%d samples, gaps %s", len(samples), fmt.Sprint(slices.Sorted(maps.Keys(o.gaps))))
}

// judge checks the samples of a recording and adds them.
func (o *outsideRun) judge(t *testing.T, samples []*raw.Sample, rd *raw.Reader) {
	t.Helper()
	names, stubs := rd.Names(), map[clr.FunctionID]bool{}
	unnamed := 0
	for id, name := range names {
		switch {
		case strings.HasPrefix(name, "method 0x"):
			unnamed++
		case strings.HasPrefix(name, "IL_STUB_"):
			stubs[id] = true
		}
	}
	if unnamed*10 > len(names) {
		t.Errorf("%d of %d methods have no name", unnamed, len(names))
	}
	for _, s := range samples {
		if slices.ContainsFunc(s.Images, func(im raw.Image) bool { return strings.Contains(strings.ToLower(im.Path), "seedwalk_") }) {
			t.Fatal("a library of ours is in the process")
		}
		o.total++
		for i := range s.Frames {
			if stubs[s.Frames[i].Function] {
				s.Frames[i].Kind = unwind.KindStub // the name in the runtime identifies it
			}
		}
		switch {
		case s.Result.Gap == merge.GapNone:
			o.whole++
			o.add(t, s, names)
		case inWine(s):
			o.wine++
		default:
			o.m.show(t, s, "a stack with a gap")
		}
		if s.Result.Gap != merge.GapNone {
			o.gaps[s.Result.Gap]++
		}
		if len(s.Frames) > 0 && s.Frames[0].Kind == unwind.KindManaged {
			o.managed++
		}
	}
}
