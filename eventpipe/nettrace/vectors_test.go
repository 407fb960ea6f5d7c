package nettrace_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// vectors is the folder of recorded traces with their truth, outside the project, in addition to the
// project's own.
const vectors = "../../../shared/vectors/nettrace"

func truthFiles(t *testing.T) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(vectors, "*.truth.json"))
	own, _ := filepath.Glob("../waits/testdata/*.truth.json")
	if len(files) == 0 {
		t.Logf("SKIPPED-CHECK: no %s: the recorded traces with third-party files are not read", vectors)
	}
	return append(files, own...)
}

// TestVectors compares counts with those of another reader.
func TestVectors(t *testing.T) {
	for _, path := range truthFiles(t) {
		raw := must.Get(os.ReadFile(path))(t)
		var truth struct {
			PID   int
			Trace string
			File  struct {
				Ends        *bool `json:"ends_with_null_tag"`
				PointerSize int   `json:"pointer_size"`
				Events      int64
				Stacks      int64
				Points      int64 `json:"sequence_points"`
				Lost        int64 `json:"dropped_by_sequence_gaps"`
			}
		}
		must.Do(t, json.Unmarshal(raw, &truth))
		if truth.File.Ends == nil {
			continue // a truth without the file's counts
		}
		f := must.Get(os.Open(filepath.Join(filepath.Dir(path), truth.Trace)))(t)
		got := read(f)
		f.Close()
		c := got.Counts
		expect.True(t, *truth.File.Ends == (got.Err == io.EOF) && len(got.Faults) == 0,
			"%s: %v, faults %v", truth.Trace, got.Err, got.Faults)
		expect.True(t, c.Events == truth.File.Events && c.Stacks == truth.File.Stacks &&
			c.Points == truth.File.Points && c.Lost == truth.File.Lost &&
			got.Trace.PointerSize == truth.File.PointerSize && got.Trace.ProcessID == truth.PID,
			"%s: %+v, want %+v", truth.Trace, c, truth.File)
		t.Logf("%s: %+v", truth.Trace, c)
	}
}
