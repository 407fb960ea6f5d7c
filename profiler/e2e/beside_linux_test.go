package e2e

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Class id of the second profiler; any value works.
const secondID = "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}"

// secondAs are the variables that make the second profiler the main one, or a notification profiler.
func secondAs(library string) (main, beside map[string]string) {
	return map[string]string{"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": secondID, "CORECLR_PROFILER_PATH": library},
		map[string]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS": "1", "CORECLR_NOTIFICATION_PROFILERS": library + "=" + secondID + ";"}
}

// heard counts the callbacks that the second profiler received.
type heard struct{ modules, methods, threads, collections, events uint64 }

func readHeard(t *testing.T, path string) (h heard) {
	t.Helper()
	b := []byte(readFile(t, path)) // the second profiler wrote it at its end
	if len(b) != 40 {
		t.Fatalf("the second profiler wrote %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint64
	return heard{n(b), n(b[8:]), n(b[16:]), n(b[24:]), n(b[32:])}
}

// Together with another vendor's profiler, in either role and in either order: both are served, and stacks
// agree with the threads' own records.
func TestBesideAnother(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	isMain, isBeside := secondAs(second)
	for _, c := range []struct {
		name    string // what the other profiler is
		env     map[string]string
		runtime string
		way     string // attach, or a mode
	}{
		{"net9 main", isMain, needs.Net9, "probe"},
		{"net9 beside", isBeside, needs.Net9, "probe"},
		{"net9 main suspended", isMain, needs.Net9, "snapshot"},
		{"net10 main", isMain, needs.Net10, "probe"},
		{"net10 beside", isBeside, needs.Net10, "probe"},
		{"net9 main attached", isMain, needs.Net9, "attach"},
		{"net10 main attached", isMain, needs.Net10, "attach"},
		{"net10 beside attached", isBeside, needs.Net10, "attach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := filepath.Join(tempdir.New(t), "counts")
			c.env["SECOND_COUNTS"] = counts
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			k := newChecker(t)
			if c.way == "attach" {
				k.attached(t, on(t, c.runtime, "Truth", "12"))
			} else {
				r := recordRaw(t, "--rate 100 --mode "+c.way, on(t, c.runtime, "Truth", "4")...)
				r.well(t, 0, "TRUTH DONE\n")
				k.recorded(t, r)
			}
			h := readHeard(t, counts)
			t.Logf("the other heard %+v", h)
			k.few(t, 60, 95)
			if h.modules < 2 || h.methods < 30 || h.threads < 20 {
				t.Errorf("the other profiler heard only %+v", h)
			}
		})
	}
}

// attached starts a truth program, records it for five seconds when it runs, and compares.
func (c *checker) attached(t *testing.T, argv []string) {
	t.Helper()
	p := attached(t, argv...)
	r := recordRaw(t, "--rate 100 --duration 5s --pid "+p.id)
	if t.Log("\n" + r.stderr); r.code != 0 {
		t.FailNow()
	}
	c.recorded(t, r)
	p.truthDone()
}
