package main

import (
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/sample/outside"
)

// checkClock predicts which clock would sample CPU time.
func checkClock(*patient) finding {
	const name = "clock"
	err := outside.PerfEvents()
	if err == nil {
		return finding{name, good, "perf events, with high-resolution timers", ""}
	}
	detail := "random moments of seedwalk, because the kernel permits no perf events (" + err.Error() + ")"
	remedy := "let the container's seccomp profile allow perf_event_open"
	if level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil && len(level) > 0 && level[0] > '2' && os.Geteuid() != 0 {
		remedy = "for a more exact clock set kernel.perf_event_paranoid to 2; it is " + strings.TrimSpace(string(level))
	}
	return finding{name, note, detail, remedy}
}
