package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var churnTime = flag.Duration("churn", 15*time.Second, "length of the churn of threads on Windows runtimes")

// leastChurn is how many threads a second must come and go.
const leastChurn = 300

// invalidThread is CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, with which the CLR ends the process when it
// walks a thread that is gone.
const invalidThread = "8013135e"

// Threads are created and end while they are sampled; ThreadDestroyed waits for the walk of its thread.
func TestWindowsChurn(t *testing.T) {
	perSecond, samples := churned(t, *churnTime, tortured{})
	if perSecond < leastChurn {
		slow(t, perSecond)
	}
	if want := int(5 * churnTime.Seconds()); samples < want {
		t.Errorf("%d samples, want %d", samples, want)
	}
}

// The same with a sampler that is delayed between its claim of a thread and the suspension, until that thread
// is in ThreadDestroyed.
func TestWindowsChurnLate(t *testing.T) {
	if _, samples := churned(t, 5*time.Second, torture(t, "late")); samples == 0 {
		t.Error("no samples")
	}
}

// churned runs the churn under a profiler: it must end as without one.
func churned(t *testing.T, length time.Duration, p tortured) (perSecond float64, samples int) {
	t.Helper()
	all, _, res := recordWindows(t, length+time.Minute, p.env, append(p.flags, "--rate", "1000"), core222, "Churn.exe", fmt.Sprint(length.Seconds()))
	perSecond = churn(t, res, length)
	t.Logf("%d samples, %.0f threads made a second\n%s", len(all), perSecond, res.stderr)
	return perSecond, len(all)
}

// churn reads the number of threads per second.
func churn(t *testing.T, res result, length time.Duration) float64 {
	t.Helper()
	var made int
	if _, err := fmt.Sscanf(res.stdout, "churn: %d threads", &made); err != nil || res.code != 0 {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
	return float64(made) / length.Seconds()
}

// slow handles a churn that was too slow: the machine is the cause only if it is also too slow without a
// profiler.
func slow(t *testing.T, perSecond float64) {
	t.Helper()
	const length = 5 * time.Second
	res := run(t, time.Minute, []string{"SWHOST_LIMIT=40"}, wine(t, "swhost.exe", need(t, core222), need(t, "out", "windows", "Churn.exe"), fmt.Sprint(length.Seconds()))...)
	plain := churn(t, res, length)
	t.Logf("TOO SLOW A MACHINE: %.0f threads a second, without a profiler %.0f; want %d", perSecond, plain, leastChurn)
	if plain > 2*leastChurn || perSecond < plain/4 {
		t.Errorf("%.0f threads a second, want %d", perSecond, leastChurn)
	}
}

// unguardedTries limits the attempts to meet the rare moment.
const unguardedTries = 8

// With a profiler that ignores ThreadDestroyed, the CLR ends the process or it hangs. This proves that the
// churn tests can fail. A thread must be walked at the very moment of its end, which depends on chance and
// load, so there are several attempts.
func TestWindowsChurnUnguarded(t *testing.T) {
	p := torture(t, "unguarded")
	for try := 1; try <= unguardedTries; try++ {
		res := runWindows(t, 15*time.Second, append(p.env, "WINEDEBUG=err+eventlog"), append(p.flags, "--rate", "1000"), core222, "Churn.exe", "10")
		if unguardedEnd(t, res) {
			t.Logf("it happened in try %d of at most %d", try, unguardedTries)
			return
		}
	}
	t.Errorf("in %d tries without the guard nothing happened", unguardedTries)
}

// unguardedEnd reports whether the missing guard ended a run.
func unguardedEnd(t *testing.T, res result) bool {
	t.Helper()
	t.Logf("exit code %d after %v: %s", res.code, res.took.Round(100*time.Millisecond), lineWith(res.stderr, invalidThread))
	switch {
	case res.code == 124:
		t.Log("it hung")
		return true
	case res.code == 0:
		return false
	}
	return native || strings.Contains(res.stderr, invalidThread) // Windows has its own event log
}
