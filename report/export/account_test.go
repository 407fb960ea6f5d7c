package export

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The summary mentions time without samples, but not the nanoseconds that rounding leaves.
func TestCPULines(t *testing.T) {
	for _, c := range []struct {
		name    string
		missing int64
		want    string
	}{
		{"rounding", 2, "1.11 of 1.11 s of the process's CPU time are in the profile (100.0 %)"},
		{"little", 3_000, "1.11 of 1.11 s of the process's CPU time are in the profile (99.9 %)\n" +
			"not sampled: short threads 3.00 µs"},
		{"much", 1_110_000_000, "WARNING: only 1.11 of 2.22 s of the process's CPU time are in the profile (50.0 %)\n" +
			"not sampled: short threads 1.11 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := CPUTime{Profile: 1_110_000_000, NotSampled: []int64{1: c.missing}}
			u.Process = u.Profile + c.missing
			got := strings.Join(u.lines(), "\n")
			expect.True(t, got == c.want, "got %q, want %q", got, c.want)
		})
	}
}
