package e2e

import (
	"strings"
	"testing"
	"time"
)

// The Go runtime changes some state of a process when it starts. These changes are undone: a profiled program
// finds its error mode and the rest as without a profiler.
func TestWindowsModes(t *testing.T) {
	modes := need(t, "out", "windows", "Modes.exe")
	plain := wineRun(t, nil, need(t, "out", "windows", "swhost.exe"), need(t, core222), modes)
	if plain.code != 0 || plain.stdout == "" {
		t.Fatalf("the program itself fails: %d %q %q", plain.code, plain.stdout, plain.stderr)
	}
	t.Logf("without a profiler\n%s", plain.stdout)
	res := runWindows(t, time.Minute, nil, []string{"--quiet"}, core222, "Modes.exe")
	if got := strings.ReplaceAll(res.stdout, "\r", ""); res.code != 0 || got != plain.stdout {
		t.Errorf("exit code %d, with the profiler\n%swithout\n%s", res.code, got, plain.stdout)
	}
}
