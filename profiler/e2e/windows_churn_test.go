package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var churnTime = flag.Duration("churn", 20*time.Second, "length of the churn of threads on Windows runtimes")

// Threads come and go while they are sampled. ThreadDestroyed waits for the walk
// of its thread; with that off the CLR ends the process, which shows that
// the test can fail.
func TestWindowsChurn(t *testing.T) {
	needWindows(t)
	flags := []string{"--rate", "1000"}
	seconds := fmt.Sprint(churnTime.Seconds())
	samples, _, res := recordWindows(t, *churnTime+time.Minute, nil, flags, core222, "Churn.exe", seconds)
	var made int
	if _, err := fmt.Sscanf(res.stdout, "churn: %d threads", &made); err != nil || res.code != 0 {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
	perSecond := float64(made) / churnTime.Seconds()
	t.Logf("guarded: %d samples, %d threads made (%.0f a second)", len(samples), made, perSecond)
	if perSecond < 20 { // a machine that is busy otherwise makes few
		t.Errorf("%.0f threads a second are no churn", perSecond)
	}
	if len(samples) < 100 {
		t.Errorf("%d samples", len(samples))
	}
	for i := range 4 {
		res = runWindows(t, *churnTime+20*time.Second, []string{"SEEDWALK_TEST_UNGUARDED=1"}, flags, core222, "Churn.exe", seconds)
		t.Logf("unguarded, run %d: exit code %d (%#x) after %v, output %q", i+1, res.code, res.code, res.took.Round(time.Second), strings.TrimSpace(res.stdout))
		if res.code != 0 {
			return // 0x8013135e of the CLR's, of which Unix shows the last byte, or 124: it hangs
		}
	}
	t.Error("without the guard nothing happened: this test cannot fail")
}
