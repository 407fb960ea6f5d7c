package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestParse(t *testing.T) {
	out := `goos: linux
BenchmarkStep/sp/leaf:_CFA=RSP+8 	   49 	 20.6 ns/op	 0 B/op
BenchmarkWalk/warm/8-2 	 100	 130.5 ns/op	 16.31 ns/frame	 0 B/op	 0 allocs/op
BenchmarkSkipped
--- SKIP: BenchmarkSkipped
PASS
`
	want := []result{{"Step/sp/leaf:_CFA=RSP+8", 20.6}, {"Walk/warm/8-2", 16.31}}
	diff := cmp.Diff(want, parse([]byte(out)), cmp.AllowUnexported(result{}))
	expect.True(t, diff == "", "%v", diff)
}

func TestPair(t *testing.T) {
	p := pair{pkg: "p",
		old: side{best: map[string]float64{"A/x": 10, "B": 20, "gone": 1}},
		new: side{best: map[string]float64{"A/x": 11, "B": 18, "added": 1},
			order: []string{"A/x", "added", "B"}},
	}
	rows := p.table()
	must.True(t, len(rows) == 2 && len(rows.slower(1.03)) == 1 && rows.slower(1.03)[0].name == "A/x",
		"%+v", rows)
	got := families(rows.slower(0))
	expect.True(t, strings.Join(got, " ") == "^BenchmarkA$/^(x)$ ^BenchmarkB$", "%q", got)
	var b strings.Builder
	rows.print(&b, 1.03, false)
	want := "2 rows, 1 slower than 1.03; median 0.90, worst 1.10, best 0.90 (p B)"
	expect.True(t, strings.Contains(b.String(), want), "%s\nwithout %q", b.String(), want)
}
