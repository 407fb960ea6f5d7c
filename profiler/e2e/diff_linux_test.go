package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var diffPairs = flag.Int("diff-pairs", 3, "how many pairs of runs of one version TestDiffRuns compares")

// Two runs of one version show no difference, in at least 95 of 100 pairs, whatever else the machine does. A
// method with five times the work is the first row.
func TestDiffRuns(t *testing.T) {
	dir := tempdir.New(t)
	record := func(name, slow string) string {
		file := filepath.Join(dir, name+".swrec")
		if r := run(t, 2*time.Minute, nil, append([]string{tool(t), "record", "--quiet", "--rate", "999", "--output", file, "--"}, app(t, "Fixed", "6000", slow)...)...); r.code != 0 {
			t.Fatal(r.stderr)
		}
		return file
	}
	compare := func(before, after string) (d diffDocument) {
		r := run(t, time.Minute, nil, tool(t), "diff", "--json", before, after)
		if r.code > 1 {
			t.Fatalf("%d\n%s", r.code, r.stderr)
		}
		if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || d.Differs != (r.code == 1) {
			t.Fatalf("%v, exit code %d\n%s", err, r.code, r.stdout)
		}
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
	t.Logf("%d of %d pairs differ", alarms, *diffPairs)
	if alarms > max(2, *diffPairs/20) {
		t.Errorf("%d of %d pairs of one version differ", alarms, *diffPairs)
	}
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
