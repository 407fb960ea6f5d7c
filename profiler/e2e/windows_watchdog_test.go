package e2e

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
)

// The CLR's walk may wait for a lock that the walked thread owns (dotnet/runtime#32286). Wine's walk takes no
// lock, so the test's library asks the system for unwind data as the CLR would. Not asking about threads in
// the loader is enough if all of them are recognised; the watchdog handles those that are not. Without both,
// the process hangs.
func TestWindowsWatchdog(t *testing.T) {
	const hung = 124 // of swhost at its limit
	for _, c := range []struct {
		mistake string
		code    int
		lost    bool // samples of threads that had to be resumed early
	}{{"careless", 7, true}, {"careful", 7, false}, {"unwatched", hung, false}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 25*time.Second, p.env, append(p.flags, "--rate", "1000", "--json"), core222, "Torture.exe", "8", "tables")
			var rec export.Recording
			if c.code != hung {
				rec = findSummary(t, res.stderr)
			}
			t.Logf("exit code %d after %v, %d samples, %d lost", res.code, res.took.Round(100*time.Millisecond), rec.Samples, rec.Lost)
			if res.code != c.code || rec.Lost > 0 != c.lost {
				t.Errorf("exit code %d, lost %d; want %d, %v\n%s", res.code, rec.Lost, c.code, c.lost, res.stderr)
			}
		})
	}
}
