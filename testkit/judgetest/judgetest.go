// Package judgetest lets tests of packages use the recorded vectors: each function judges a file, logs the
// counts, and fails the test for every point that is not right. Files that are not on this machine are
// skipped and counted.
package judgetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judge"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// shown is how many points of a kind that are not right are shown in full.
const shown = 10

// PE judges a file of PE vectors ("amd64-exec").
func PE(t *testing.T, file string) {
	t.Helper()
	s := &judge.Score{File: file, Max: shown}
	x := judge.NewPE(s)
	_, err := pevec.Each(file+".jsonl.gz", x.Vector)
	if errors.Is(err, pevec.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	if err != nil {
		t.Error(err)
	}
	check(t, s)
}

// Snapshots judges every stack of an architecture (x86_64, aarch64).
func Snapshots(t *testing.T, arch string) {
	t.Helper()
	a := Archive(t, snap.ForArch(arch))
	total := &judge.Score{File: arch, Max: shown}
	for _, name := range a.Programs(arch) {
		p, err := a.Load(name)
		if err == nil {
			err = judge.Snapshots(total, p)
		}
		if err != nil {
			t.Error(err)
		}
	}
	check(t, total)
}

// Rows judges every row of call frame information of an architecture. extra is
// called for each rule that a row has and the vector does not list.
func Rows(t *testing.T, arch string, extra func(binary, pc string, register int)) {
	t.Helper()
	a := Archive(t, func(name string) bool {
		return strings.Contains(name, arch) &&
			strings.HasPrefix(name, "row")
	})
	for _, name := range a.Names("rows/") {
		s := &judge.Score{File: name, Max: shown}
		x := judge.NewRows(s, a.Beside(name))
		x.Extra = extra
		data, _ := a.File(name)
		for line := range strings.Lines(string(data)) {
			if err := x.Line([]byte(line)); err != nil {
				t.Error(name, err)
			}
		}
		check(t, s)
	}
}

// Archive opens what keep chooses of the elf vectors, or skips the test.
func Archive(t *testing.T, keep func(string) bool) *snap.Archive {
	t.Helper()
	a, err := snap.OpenVectors(keep)
	if errors.Is(err, snap.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// check fails if a point is not right, or if there are none.
func check(t *testing.T, s *judge.Score) {
	t.Helper()
	points := 0
	for _, x := range s.Tallies {
		points += x.Points
		t.Logf("%s %s: %d points, %d right, %d wrong, %d refused", s.File, x.Kind,
			x.Points, x.Right, x.Wrong, x.Refused)
		for i := range x.Mismatches {
			if m := &x.Mismatches[i]; x.Failure(m) {
				var b strings.Builder
				m.Text(&b)
				t.Errorf("%s, %s\n%s", m.ID, m.Where, b.String())
			}
		}
		if x.Bad() && len(x.Mismatches) == 0 {
			t.Error("points are not right")
		}
	}
	for _, f := range s.Faults {
		t.Error(f)
	}
	if points == 0 {
		t.Error(s.File, "holds no points")
	}
}
