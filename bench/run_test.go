package bench

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func run(name string, args ...string) error {
	if b, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, b)
	}
	return nil
}

func record(tb testing.TB, deep, path string, depth int) {
	tb.Helper()
	must.Do(tb, run(deep, path, fmt.Sprint(depth)))
}

// rawFiles lists the raw sample files to walk. If there are none, it logs why.
func rawFiles(b *testing.B) []string {
	files, err := peer.RawFiles(b.TempDir())
	if err != nil {
		b.Log("SKIPPED-CHECK: " + err.Error())
	}
	return files
}

// Both sides return every frame of stacks of known depth, so the benchmarks time whole walks.
func TestDeep(t *testing.T) {
	peers, deep := rivals(t)
	for _, depth := range []int{8, 32, 128} {
		path := t.TempDir() + "/deep"
		record(t, deep, path, depth)
		f := must.Get(capture.Read(path))(t)
		for i := range peers {
			if got := peers[i].agreed(t, f).Stacks[0].Limit; got != depth {
				t.Errorf("%s: %d frames of a stack of %d", peers[i].name, got, depth)
			}
		}
		replayed(t, f)
	}
}

// A sampler's slowest walks matter more than the mean. So each stack is walked once, and each round begins
// with an empty cache of rules. A sampler walks a stack right after copying it, when the words of the stack
// are in the processor's caches.

// tails are the 99th percentiles of this run for stacks that were just copied, in us, by name of the input.
// farTails are those of other stacks, whose words are mostly in main memory.
var tails, farTails = map[string]float64{}, map[string]float64{}

// tailRounds is how often each stack is walked. The fastest walk counts: whatever else runs on the machine
// only adds time.
const tailRounds = 9

// times returns each stack's time in us, of rounds that begin with empty caches of rules. If copied is true,
// each stack is copied before its walk, which is not timed.
func (s *side) times(copied bool) []float64 {
	us := make([]float64, len(s.file.Stacks))
	defer func(mems []*memory.Window) { s.mems = mems }(slices.Clone(s.mems))
	var room []byte
	for round := range tailRounds {
		s.empty(false)
		for i := range us {
			if copied {
				room = s.copy(i, room[:0])
			}
			begin := time.Now()
			s.walk(i)
			t := float64(time.Since(begin)) / 1000
			if round == 0 || t < us[i] {
				us[i] = t
			}
		}
	}
	return us
}

// copy copies stack i to room, and makes the next walk use the copy. It returns room, which may have grown.
func (s *side) copy(i int, room []byte) []byte {
	runs := slices.Clone(s.file.Stacks[i].Runs)
	for _, r := range runs {
		room = append(room, r.Data...)
	}
	for k, at := 0, 0; k < len(runs); k++ {
		n := len(runs[k].Data)
		runs[k].Data, at = room[at:at+n], at+n
	}
	s.mems[i] = memory.New(runs...)
	return room
}

// percentile99 is what one in a hundred reaches or exceeds.
func percentile99(us []float64) float64 {
	sorted := slices.Sorted(slices.Values(us))
	return sorted[len(sorted)*99/100]
}

// BenchmarkTail prints the 99th percentiles of stacks that are each walked once.
func BenchmarkTail(b *testing.B) {
	for _, c := range captured(b) {
		b.Run(c.name, func(b *testing.B) {
			s := newSide(c.file)
			for b.Loop() {
				s.times(false)
			}
			farTails[c.name] = percentile99(s.times(false))
			tails[c.name] = percentile99(s.times(true))
			b.ReportMetric(farTails[c.name], "p99-us")
			b.ReportMetric(tails[c.name], "copied-p99-us")
		})
	}
}

func TestPercentile(t *testing.T) {
	us := make([]float64, 1000)
	for i := range us {
		us[i] = float64(1000 - i)
	}
	expect.Equal(t, percentile99(us), 991)
	expect.Equal(t, percentile99(us[:1]), 1000)
}
