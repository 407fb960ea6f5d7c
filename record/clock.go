package record

import "fmt"

// clockLines name the clock that decided when running threads were sampled, and its quality,
// of an engine's counters.
func clockLines(c map[string]int64) (out []string) {
	if c["clock_perf"] > 0 {
		line := "clock: perf_event, high-resolution timers"
		if c["clock_user_only"] > 0 {
			line += "; the kernel permits no samples of itself"
		}
		out = append(out, line)
	}
	if c["clock_random"] > 0 {
		kept, rejected := c["clock_kept"], c["clock_rejected"]
		out = append(out, fmt.Sprintf("clock: random, by the tool; lateness p90 %d us, %d %% of hits rejected",
			(c["clock_late_ns"]+500)/1000, rejected*100/max(1, kept+rejected)))
	}
	if c["clock_timer"] > 0 {
		out = append(out, "clock: CPU timers, tick-bound: work locked to the kernel's tick is invisible")
	}
	return out
}
