package e2e

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// collected runs a program from start to end in a session, and returns its output.
func collected(t *testing.T, path string, argv []string) string {
	t.Helper()
	port, err := diagnostics.Listen(filepath.Join(tempdir.New(t), "p"))
	must.Do(t, err)
	defer port.Close()
	p := startIn(t, []string{port.Variable()}, argv...)
	c := <-port.Runtimes()
	s, err := c.Collect(diagnostics.Config{Rundown: 0x80020139, Providers: []diagnostics.Provider{
		{Name: "Microsoft-DotNETCore-SampleProfiler", Level: 5},
		{Name: "Microsoft-Windows-DotNETRuntime", Keywords: 0x40000004000 | 0x8000 | 0x10 | 0x1, Level: 5}}})
	if err == nil {
		err = c.Resume()
	}
	must.Do(t, err)
	file, err := os.Create(path)
	must.Do(t, err)
	defer file.Close()
	if _, err := io.Copy(file, s); err != nil {
		t.Fatal(err)
	}
	p.wait()
	return p.out.String()
}

// The trace of a program, read by report and convert, has the allocations and exceptions that the program
// counted. It has samples, pauses, and compiled methods.
func TestTraceReport(t *testing.T) { eachRuntime(t, traceReport) }

func traceReport(t *testing.T, runtime string) {
	dir := tempdir.New(t)
	path, into := filepath.Join(dir, "run.nettrace"), filepath.Join(dir, "run.json")
	truth := collected(t, path, on(t, runtime, "Events"))
	r := seedwalk(t, "convert", path, "--output", into)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	f := readJSONProfile(t, into)
	f.allocated(t, truth, "Events", "Events.Part", "Events.All", "Events.Main")
	for _, kind := range []string{"GC pause", "JIT method", "wait"} {
		if !slices.ContainsFunc(f.Stacks, func(s jsonStack) bool { return s.Event == kind && s.Sum > 0 }) {
			t.Errorf("no %s", kind)
		}
	}
	var wall int64
	for i := range f.Stacks {
		if wall += f.Stacks[i].Wall; f.Stacks[i].CPU > f.Stacks[i].Wall {
			t.Errorf("%+v", f.Stacks[i])
		}
	}
	if wall == 0 || f.Samples < 100 || f.Complete < f.Samples*9/10 {
		t.Errorf("%d samples, %d complete, %d ns", f.Samples, f.Complete, wall)
	}
	pipe := "gzip <" + path + " | " + tool(t) + " report --metric exceptions --top 3 -"
	if r := run(t, time.Minute, nil, "sh", "-c", pipe); r.code != 0 || !strings.Contains(r.stdout, "100 t odd") {
		t.Errorf("from a pipe: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
