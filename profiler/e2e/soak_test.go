package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var soakTime = flag.Duration("soak", 8*time.Second, "length of the soak")

// The program's output and exit code are the same as without a profiler, under everything that is hard for
// one.
func TestSoak(t *testing.T) {
	exe := need(t, "out", "samples", "Soak.exe")
	plain := run(t, time.Minute, nil, app(t, "Soak", "3", exe)...)
	must.Equal(t, plain.code, 42, "the program itself fails: %s%s", plain.stdout, plain.stderr)
	r := record(t, "--mode snapshot --rate 100", app(t, "Soak", fmt.Sprint(soakTime.Seconds()), exe)...)
	expect.True(t, r.code == plain.code && r.stdout == plain.stdout,
		"exit code %d and output\n%swithout the profiler %d and\n%s%s", r.code, r.stdout, plain.code,
		plain.stdout, r.stderr)
	took := time.Duration(r.DurationNanos).Seconds()
	r.whole(t, int64(200*took), 970)
	t.Logf("%.0f s, %.0f samples a second, %d suspensions, %d retries; suspended p50 %v p99 %v max %v, lost %d", took, float64(r.Samples)/took,
		r.Suspended.Count, r.Retries, r.Suspended.P50, r.Suspended.P99, r.Suspended.Max, r.Lost)
	for _, line := range strings.Split(strings.TrimSpace(r.stderr), "\n") {
		if strings.HasPrefix(line, "soak: ") {
			t.Log(line)
		}
	}
}
