package waits_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

const vectors = "../../../shared/vectors/nettrace"

func load(t *testing.T, path string) (truth waittruth.File, a *waits.Analysis) {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	must.Do(t, json.Unmarshal(raw, &truth))
	if truth.Trace == "" {
		truth.Trace = strings.TrimSuffix(filepath.Base(path), ".truth.json") + ".nettrace"
	}
	f := must.Get(os.Open(filepath.Join(filepath.Dir(path), truth.Trace)))(t)
	defer f.Close()
	a = waits.New()
	if err := a.Read(f); err != nil {
		t.Errorf("%s: %v", truth.Trace, err)
	}
	a.Finish()
	return truth, a
}

// TestTruth: every wait of every truth file is found.
func TestTruth(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(vectors, "*.truth.json"))
	if len(files) == 0 {
		t.Logf("SKIPPED-CHECK: no %s: the recorded traces with third-party files are not judged", vectors)
	}
	own, _ := filepath.Glob("testdata/*.truth.json")
	if len(own) == 0 {
		t.Error("the project's own traces are gone")
	}
	for _, path := range append(files, own...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			truth, a := load(t, path)
			r := waittruth.Judge(truth.Waits, a)
			for _, p := range r.Problems {
				t.Error(p)
			}
			if r.Frames == 0 {
				t.Error("no frames")
			}
			t.Logf("%d of %d waits, %d of %d frames named, %d waits in all", r.Found, len(truth.Waits), r.Frames-r.Unnamed, r.Frames, len(a.Waits))
		})
	}
}
