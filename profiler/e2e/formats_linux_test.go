package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// report and convert write each format from a recording after the recorded program has ended. The files are
// equal, byte for byte, to those that record wrote.
func TestFormatsOfRecording(t *testing.T) {
	dir := tempdir.New(t)
	var names []string
	for _, f := range export.Formats() {
		if f.Name != "text" {
			names = append(names, f.Extensions[0][1:])
		}
	}
	kept := filepath.Join(dir, "kept.swrec")
	argv := []string{tool(t), "record", "--quiet", "--output", kept}
	for _, name := range names {
		argv = append(argv, "--output", filepath.Join(dir, "record."+name))
	}
	run(t, time.Minute, nil, append(append(argv, "--"), app(t, "Demo", "2")...)...).ok(t)
	for _, name := range names {
		want := must.Get(os.ReadFile(filepath.Join(dir, "record."+name)))(t)
		for _, by := range []string{"report", "convert"} {
			out := filepath.Join(dir, by+"."+name)
			argv := []string{tool(t), by, kept, out}
			if by == "report" {
				argv = []string{tool(t), by, "--output", out, kept}
			}
			run(t, time.Minute, nil, argv...).ok(t)
			got, err := os.ReadFile(out)
			expect.True(t, err == nil && bytes.Equal(got, want),
				"%s writes another %s than record: %d bytes, want %d, %v", by, name, len(got), len(want), err)
		}
	}
	seedwalk(t, "diff", kept, kept).ok(t) // exit code 1 if they differ
}

var diffPairs = flag.Int("diff-pairs", 3, "how many pairs of runs of one version TestDiffRuns compares")

// Two runs of one version show no difference, in at least 95 of 100 pairs, whatever else the machine does. A
// method with five times the work is the first row.
func TestDiffRuns(t *testing.T) {
	dir := tempdir.New(t)
	record := func(name, slow string) string {
		file := filepath.Join(dir, name+".swrec")
		run(t, 2*time.Minute, nil,
			append([]string{tool(t), "record", "--quiet", "--rate", "999", "--output", file, "--"},
				app(t, "Fixed", "6000", slow)...)...).ok(t)
		return file
	}
	compare := func(before, after string) (d diffDocument) {
		r := run(t, time.Minute, nil, tool(t), "diff", "--json", before, after)
		must.True(t, r.code <= 1, "%d\n%s", r.code, r.stderr)
		err := json.Unmarshal([]byte(r.stdout), &d)
		must.True(t, err == nil && d.Differs == (r.code == 1), "%v, exit code %d\n%s", err, r.code, r.stdout)
		return d
	}
	alarms := 0
	for i := range *diffPairs {
		d := compare(record(fmt.Sprint("a", i), "0"), record(fmt.Sprint("b", i), "0"))
		if d.Differs {
			alarms++
			t.Logf("pair %d: %+v", i, d.Functions[:min(3, len(d.Functions))])
		}
	}
	expect.Figures(t, alarms <= max(2, *diffPairs/20),
		"%d of %d pairs of one version differ", alarms, *diffPairs)
	d := compare(filepath.Join(dir, "a0.swrec"), record("slow", "400"))
	if !d.Differs || !strings.HasPrefix(d.Functions[0].Name, "Fixed.Divide") || d.Functions[0].Delta <= 0 {
		t.Errorf("the regression is not first: %+v", d.Functions[:3])
	}
}

// diffDocument is what diff --json prints.
type diffDocument struct {
	Differs   bool
	Functions []struct {
		Name        string
		Delta       float64
		Significant bool
	}
}

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
	_, err = io.Copy(file, s)
	must.Do(t, err)
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
	r.ok(t)
	f := readJSONProfile(t, into)
	f.allocated(t, truth, "Events", "Events.Part", "Events.All", "Events.Main")
	for _, kind := range []string{"GC pause", "JIT method", "wait"} {
		if !slices.ContainsFunc(f.Stacks, func(s jsonStack) bool { return s.Event == kind && s.Sum > 0 }) {
			t.Errorf("no %s", kind)
		}
	}
	var wall int64
	for i := range f.Stacks {
		wall += f.Stacks[i].Wall
		expect.True(t, f.Stacks[i].CPU <= f.Stacks[i].Wall, "%+v", f.Stacks[i])
	}
	expect.True(t, wall != 0 && f.Samples >= 100 && f.Complete >= f.Samples*9/10,
		"%d samples, %d complete, %d ns", f.Samples, f.Complete, wall)
	pipe := "gzip <" + path + " | " + tool(t) + " report --metric exceptions --top 3 -"
	r = run(t, time.Minute, nil, "sh", "-c", pipe)
	r.ends(t, 0, r.stdout, "100 t odd")
}
