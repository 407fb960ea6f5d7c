package export

import (
	"encoding/json"
	"testing"

	"github.com/seedwalk/seedwalk/report/export/speedscope"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The profile of a thread is in true time order: each sample ends when it was taken, and time
// without samples is empty.
func TestSpeedscopeInOrder(t *testing.T) {
	var f speedscope.File
	must.Do(t, json.Unmarshal(written(t, WriteSpeedscope, timed()), &f))
	all, a, b := f.Profiles[0], f.Profiles[1], f.Profiles[2]
	expect.True(t, len(all.Samples) == 3 && a.End == 1e9 && b.End == 8e8,
		"%d sums, thread a ends at %d, b at %d", len(all.Samples), a.End, b.End)
	d := cmptest.Diff([]int64{2e8, 6e8}, b.Weights)
	expect.True(t, d == "" && len(b.Samples[0]) == 0 && f.Shared.Frames[b.Samples[1][0]].Name == "wait",
		"%v %s", b.Samples, d)
	at, names := int64(0), ""
	for i, s := range a.Samples {
		if at += a.Weights[i]; len(s) == 1 {
			expect.True(t, at%20e6 == 0 && a.Weights[i] == 1e7,
				"sample %d of %d ns ends at %d", i, a.Weights[i], at)
			names += f.Shared.Frames[s[0]].Name
		}
	}
	expect.Equal(t, names, "fffffffffffffffffffffffffggggggggggggggggggggggggg")
}

// Samples of a thread do not overlap, even if they claim more time than there is between them.
func TestSpeedscopeNoOverlap(t *testing.T) {
	p := timed()
	for i := range p.Samples {
		p.Samples[i].Wall *= 3
	}
	var f speedscope.File
	must.Do(t, json.Unmarshal(written(t, WriteSpeedscope, p), &f))
	expect.Equal(t, f.Profiles[1].End, 1e9, "end of the thread's profile")
}
