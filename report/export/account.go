package export

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Names of frames for CPU time without a stack.
const (
	NotSampled = "[not sampled]"         // root of time without samples; its callee is the cause
	Kernel     = "[kernel]"              // leaf of a thread that is in the kernel
	KernelTime = "[kernel, not located]" // time in the kernel that no sample locates
)

// Causes names the causes of package wire: why CPU time has no samples.
var Causes = [...]string{"unknown", "short threads", "before verification", "start-up", "no room",
	"tool too slow", "signals blocked", "rate too low", "between ticks"}

// CPUTime accounts for the CPU time of the recorded processes, in nanoseconds.
type CPUTime struct {
	Process    int64   // exact, by the clocks of the processes
	Profile    int64   // part of Process in the profile
	Kernel     int64   // of Profile, in the kernel and not located by samples
	NotSampled []int64 // by cause: indices are those of Causes
}

// causeOf returns the cause if the stack is CPU time without samples; false for other stacks.
func (p *Profile) causeOf(s *Stack) (cause string, ok bool) {
	if len(s.Frames) == 0 || p.Frames[s.Frames[0]].Class != ClassUnsampled {
		return "", false
	}
	return strings.Trim(clean(p.Frames[s.Frames[0]].Name), "[]"), true
}

// The summary warns if the profile lacks much CPU time: if the share that it has, in percent, is below
// lowCoverage, and it has no samples or lacks at least manyMissing of them. A few may be missing by chance.
const lowCoverage, manyMissing = 95, 10

// The summary does not mention times below rounding, in nanoseconds. They come from rounded shares.
const rounding = 1000

// coverage is the share of CPU time that is in the profile, in percent; 100 if there is no time.
func (c *CPUTime) coverage() float64 {
	if all := c.Profile + c.missing(); all > 0 {
		return 100 * float64(c.Profile) / float64(all)
	}
	return 100
}

func (c *CPUTime) missing() (ns int64) {
	for _, n := range c.NotSampled {
		if n >= rounding {
			ns += n
		}
	}
	return ns
}

// barelyRan reports whether the processes used less CPU time than is between two samples, and have none.
func (p *Profile) barelyRan() bool {
	c := p.Stats.CPU
	return c != nil && c.Profile == 0 && p.RateHz > 0 && float64(c.Process) < p.periodNanos()
}

// lacksCPU reports whether the summary warns of CPU time that is not in the profile.
func (p *Profile) lacksCPU() bool {
	c := p.Stats.CPU
	return c != nil && c.coverage() < lowCoverage && !p.barelyRan() &&
		(c.Profile == 0 || float64(c.missing()) >= manyMissing*1e9/cmp.Or(max(p.RateHz, 0), 1))
}

// cpuLines describes how much CPU time is in the profile, for the summary. Stats.CPU must be known.
func (p *Profile) cpuLines() []string {
	c := p.Stats.CPU
	if p.barelyRan() {
		return []string{fmt.Sprintf("the process used %s, less than the %s between two samples; to sample it, record for longer, or with a higher --rate",
			shortTime(time.Duration(c.Process)), shortTime(time.Duration(p.periodNanos())))}
	}
	line := fmt.Sprintf("%s of the process's CPU time are in the profile (%s)",
		partTimes(c.Profile, c.Process), coveragePercent(c.coverage()))
	if p.lacksCPU() {
		line = "WARNING: only " + line
	}
	out := []string{line}
	for cause, n := range c.NotSampled {
		if n >= rounding && cause < len(Causes) {
			out = append(out, fmt.Sprintf("not sampled: %s %s", Causes[cause], shortTime(time.Duration(n))))
		}
	}
	if c.Kernel > 0 {
		out = append(out, fmt.Sprintf("in the kernel, not located: %s", shortTime(time.Duration(c.Kernel))))
	}
	return out
}

// partTimes formats a part of a time and the whole, both in the unit of the whole.
func partTimes(part, whole int64) string {
	unit, size := "s", float64(time.Second)
	if whole < int64(time.Second) {
		unit, size = "ms", float64(time.Millisecond)
	}
	return digits(float64(part)/size) + " of " + digits(float64(whole)/size) + " " + unit
}

// sampledCPU returns the number of samples that locate CPU time, and that time in nanoseconds.
func (p *Profile) sampledCPU() (count, nanos int64) {
	for i := range p.Stacks {
		if s := &p.Stacks[i]; s.Event == NoEvent && s.Count > 0 && s.CPUNanos > 0 {
			count += s.cpuCount()
			nanos += s.CPUNanos
		}
	}
	return count, nanos
}

// periodNanos returns the CPU time between two samples: measured, else requested, else a second.
func (p *Profile) periodNanos() float64 {
	if count, nanos := p.sampledCPU(); count > 0 {
		return float64(nanos) / float64(count)
	}
	return 1e9 / cmp.Or(max(p.RateHz, 0), 1)
}

// cpuRate returns the samples per second of CPU time.
func (p *Profile) cpuRate() int64 { return int64(1e9/p.periodNanos() + 0.5) }

// rateLines describe how often CPU time was sampled, and by which clock.
func (p *Profile) rateLines() (out []string) {
	if count, _ := p.sampledCPU(); count > 0 {
		line := fmt.Sprintf("%s, %s per second of CPU time", plural(count, "sample"), Thousands(p.cpuRate()))
		if p.Stats.Way == WaySnapshot {
			line = plural(count, "sample") + " with the CPU time since the thread's previous sample"
		}
		if p.RateHz > 0 {
			line += fmt.Sprintf("; %g requested", p.RateHz)
		}
		out = append(out, line)
	}
	if c := p.Stats.Clock; c != nil {
		out = append(out, "clock: "+c.line())
	}
	return out
}

// coveragePercent formats a percentage. It returns 100 % only for complete coverage.
func coveragePercent(f float64) string {
	if f < 100 && f > 99.9 {
		f = 99.9
	}
	return fmt.Sprintf("%.1f %%", f)
}

// ClockKind is the clock that chooses the moments of CPU samples. The best is first.
type ClockKind uint8

const (
	ClockUnknown ClockKind = iota
	ClockPerf              // perf_event: a high-resolution timer of the kernel
	ClockRandom            // random moments that the tool chooses
	ClockTimer             // POSIX CPU timers, which expire at the kernel's tick
	NumClocks
)

var clockNames = [NumClocks]string{"unknown", "perf", "random", "timer"}

func (k ClockKind) String() string {
	if k < NumClocks {
		return clockNames[k]
	}
	return clockNames[ClockUnknown]
}

// Clock is the clock of CPU samples, with the figures of ClockRandom.
type Clock struct {
	Kind      ClockKind
	UserOnly  bool          // ClockPerf: no samples of the kernel
	Stretches int64         // ClockPerf: processes with threads that were sampled only in stretches of time
	Timers    int64         // processes with threads that got CPU timers because they wait very often
	Processes int64         // all whose clock is known
	LateP90   time.Duration // from the chosen moment to the sample, 90th percentile; 0 = unknown
	Hits      int64         // samples that the random clock took
	Rejected  int64         // of Hits, of threads that were only runnable
}

// line describes the clock.
func (c *Clock) line() string {
	line := c.Kind.String()
	switch c.Kind {
	case ClockPerf:
		line = "perf_event, high-resolution timers"
		if c.UserOnly {
			line += "; the kernel permits no samples of itself"
		}
		if c.Stretches > 0 {
			line += fmt.Sprintf("; in %d of %d processes, threads that switch often are sampled only in random stretches of time", c.Stretches, c.Processes)
		}
	case ClockRandom:
		line = "random moments"
		if c.Hits > 0 {
			line += fmt.Sprintf("; lateness p90 %s, %s of samples rejected",
				shortTime(c.LateP90), percent(c.Rejected, c.Hits))
		}
	case ClockTimer:
		line = "CPU timers, tick-bound: work locked to the tick is invisible"
	}
	if c.Timers > 0 {
		line += fmt.Sprintf("; in %d of %d processes, threads that wait very often are sampled by CPU timers", c.Timers, c.Processes)
	}
	return line
}
