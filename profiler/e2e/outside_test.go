package e2e

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/raw"
	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

// recordProbe runs a command under seedwalk record on the probe's way and reads
// the raw samples.
func recordProbe(t *testing.T, limit time.Duration, rate string, argv ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED-CHECK: the probe is for x86-64")
	}
	need(t, "out", "bin", "libseedwalk_probe.so")
	dir := tempdir.New(t)
	file := filepath.Join(dir, "raw")
	args := []string{tool(t), "record", "--mode", "probe", "--rate", rate, "--raw", file, "--output", filepath.Join(dir, "out.json"), "--"}
	r := run(t, limit, nil, append(args, argv...)...)
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("no raw samples: %v\n%s", err, r.stderr)
	}
	defer f.Close()
	rd, err := raw.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var samples []*raw.Sample
	for {
		s, err := rd.Next()
		if err == io.EOF {
			return samples, rd, r
		}
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, s)
	}
}

// The stacks that the probe copied are what the threads say of themselves.
func TestProbeTruth(t *testing.T) {
	c := newChecker(t)
	table := map[uint64]*tally{}
	managed := 0
	for runs, total := 0, 0; total < wantSamples && runs < maxRuns; runs++ {
		samples, rd, res := recordProbe(t, 5*time.Minute, "500", app(t, "Truth", "20")...)
		if res.code != 0 || res.stdout != "TRUTH DONE\n" {
			t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
		}
		c.methods = rd.Names()
		c.compare(t, table, samples)
		total += len(samples)
		managed += onTop(samples)
	}
	c.verdict(t, table)
	t.Logf("%d samples with managed code on top", managed)
}

// onTop counts the stacks whose thread was interrupted in managed code.
func onTop(samples []*raw.Sample) (n int) {
	for _, s := range samples {
		if len(s.Frames) > 0 && s.Frames[0].Function != 0 && s.Frames[0].Exact {
			n++
		}
	}
	return n
}
