package export

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// The samples of an Activity are separate. All samples of a stack add up to its values.
func TestActivityLabels(t *testing.T) {
	one, other := &Activity{Trace: [16]byte{1}, Span: [8]byte{2}}, &Activity{Trace: [16]byte{3}, Span: [8]byte{4}}
	p := &Profile{Frames: []Frame{{Name: "App.Run", ModuleIndex: -1}}, Threads: []Thread{{ID: 7, Name: "worker"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 4, WallNanos: 100, CPUNanos: 10, CPUCount: 3, Complete: true}},
		Samples: []Sample{{At: 1, Wall: 10, CPU: true, Activity: one}, {At: 2, Wall: 20, CPU: true, Activity: other},
			{At: 3, Wall: 30, Activity: one}, {At: 4, Wall: 40, CPU: true}}}
	var b bytes.Buffer
	must.Do(t, WritePprof(&b, p))
	got := must.Get(profile.Parse(&b))(t)
	want := map[string][4]int64{"": {1, 40, 4, 1}, "01000000000000000000000000000000 0200000000000000": {2, 40, 3, 1},
		"03000000000000000000000000000000 0400000000000000": {1, 20, 3, 1}}
	for _, s := range got.Sample {
		key := ""
		if len(s.Label[labelTrace]) > 0 {
			key = s.Label[labelTrace][0] + " " + s.Label[labelSpan][0]
		}
		if [4]int64(s.Value) != want[key] {
			t.Errorf("%q: %v, want %v", key, s.Value, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	data := must.Get(otlpData(p))(t)
	if links := data.Dictionary.Links; len(links) != 3 || links[1].Span[0] != 2 || links[2].Trace[0] != 3 {
		t.Errorf("links: %+v", links)
	}
	activities := activitiesJSON(p)
	if len(activities) != 2 || activities[0].Stacks[0] != [2]int64{0, 2} || activities[1].Span != "0400000000000000" {
		t.Errorf("JSON: %+v", activities)
	}
}
