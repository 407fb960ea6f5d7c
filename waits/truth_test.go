package waits_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/waits"
)

const vectors = "../../shared/vectors/nettrace"

type truthFile struct {
	PID   int
	Trace string
	Waits []truthWait
}

type truthWait struct {
	Scenario, Kind, Expect string
	TID                    uint64
	Before                 uint64   `json:"qpc_before"`
	After                  uint64   `json:"qpc_after"`
	Min                    float64  `json:"min_ms"`
	Wall                   float64  `json:"wall_ms"`
	Frames                 []string `json:"frames_leaf_to_root"`
}

func load(t *testing.T, path string) (truth truthFile, a *waits.Analysis) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &truth); err != nil {
		t.Fatal(err)
	}
	if truth.Trace == "" {
		truth.Trace = strings.TrimSuffix(filepath.Base(path), ".truth.json") + ".nettrace"
	}
	f, err := os.Open(filepath.Join(filepath.Dir(path), truth.Trace))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a = waits.New()
	if err := a.Read(f); err != nil {
		t.Errorf("%s: %v", truth.Trace, err)
	}
	a.Finish()
	return truth, a
}

// TestTruth: every wait of a truth file is found exactly once, with its kind,
// inside its bounds, at least as long as its minimum, with its frames.
func TestTruth(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(vectors, "*.truth.json"))
	if len(files) == 0 {
		t.Logf("SKIPPED-CHECK: no %s: the recorded traces with third-party files are not judged", vectors)
	}
	own, _ := filepath.Glob("testdata/*.truth.json")
	for _, path := range append(files, own...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			truth, a := load(t, path)
			found, unnamed, frames := judge(t, &truth, a)
			checkSums(t, a)
			t.Logf("%d of %d waits found, %d of %d frames named, %d waits in all", found, len(truth.Waits), frames-unnamed, frames, len(a.Waits))
			if frames == 0 || unnamed > 0 {
				t.Errorf("%d of %d frames have no name", unnamed, frames)
			}
		})
	}
}

func judge(t *testing.T, truth *truthFile, a *waits.Analysis) (found, unnamed, frames int) {
	t.Helper()
	for i := range truth.Waits {
		w := &truth.Waits[i]
		want, got, nanos := 1, 0, int64(0)
		kind, twice := strings.CutSuffix(w.Expect, "*2")
		if twice {
			want = 2
		}
		switch kind {
		case "", "none":
			want = 0
		}
		for j := range a.Waits {
			g := &a.Waits[j]
			if g.Thread != w.TID || g.Depth > 0 || g.Start < w.Before || g.Stop > w.After || g.State != waits.Complete {
				continue
			}
			names, lacking := frameNames(a, g)
			if want > 0 && (g.Kind.Event() != kind || !inOrder(names, w.Frames)) {
				continue
			}
			unnamed, frames = unnamed+lacking, frames+len(names)
			got++
			nanos += g.Nanos
		}
		if got != want || want > 0 && float64(nanos)/1e6 < w.Min {
			t.Errorf("%s of thread %d: %d waits of %.1f ms together, want %d of at least %.0f", w.Scenario, w.TID, got, float64(nanos)/1e6, want, w.Min)
			continue
		}
		found++
	}
	return
}

func frameNames(a *waits.Analysis, w *waits.Wait) (names []string, lacking int) {
	for _, f := range a.Frames(w.Stack, w.Start) {
		names = append(names, f.Name)
		if !f.Named {
			lacking++
		}
	}
	return
}

// inOrder: want stands in names, in order, others between.
func inOrder(names, want []string) bool {
	for _, n := range names {
		if len(want) > 0 && n == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// checkSums: no thread waits longer than it lives, and its top-level waits do
// not overlap.
func checkSums(t *testing.T, a *waits.Analysis) {
	t.Helper()
	wall := a.Trace.Nanos(a.Last - a.First)
	last := map[uint64]*waits.Wait{}
	for i := range a.Waits {
		w := &a.Waits[i]
		if w.Depth > 0 || w.State == waits.Unreliable {
			continue
		}
		if before := last[w.Thread]; before != nil && w.Start < before.Stop {
			t.Errorf("thread %d waits twice at %v", w.Thread, a.At(w.Start))
		}
		last[w.Thread] = w
	}
	for _, th := range a.Threads {
		if th.Nanos > wall {
			t.Errorf("thread %d waits %d ns of %d", th.ID, th.Nanos, wall)
		}
	}
}
