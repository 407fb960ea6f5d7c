package stepper

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// sums are the tallies of all builds by test, in the order in which tests began.
var sums []*sum

type sum struct {
	test   string
	builds int
	Tally
}

// note prints a build's tally, and adds it to its test's.
func note(t *testing.T, c *Tally) {
	t.Helper()
	t.Log(c.String())
	test, _, _ := strings.Cut(t.Name(), "/")
	if len(sums) == 0 || sums[len(sums)-1].test != test {
		sums = append(sums, &sum{test: test})
	}
	s := sums[len(sums)-1]
	s.builds++
	s.Points += c.Points
	s.Right += c.Right + c.Complete
	s.Short += c.Short
	s.Doubtful += c.Doubtful
	s.SureWrong += c.SureWrong
}

// TestMain prints, of a run of every build, what came of them by test.
func TestMain(m *testing.M) {
	code := m.Run()
	if *all {
		fmt.Printf("%-24s %6s %8s %8s %6s %8s %s\n", "", "builds", "points", "right", "short", "doubtful", "wrong without doubt")
		for _, s := range sums {
			fmt.Printf("%-24s %6d %8d %8d %6d %8d %d\n", s.test, s.builds, s.Points, s.Right, s.Short, s.Doubtful, s.SureWrong)
		}
	}
	os.Exit(code)
}
