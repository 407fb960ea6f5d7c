package collect

import (
	"strings"

	"github.com/seedwalk/seedwalk/report/wire"
)

// handlerKey is the time of the probe's handler.
const handlerKey = "probe_handler_ns"

// sampled adds a process's counters to the profile's. Some figures cannot be added: of the processes' values,
// it keeps the least thread_min, and the greatest of the others.
func (b *builder) sampled(p *Process) {
	s := &b.p.Stats
	for key, v := range p.counters {
		name, ok := strings.CutPrefix(key, wire.StatEngine)
		if !ok {
			continue
		}
		if s.Counters == nil {
			s.Counters = map[string]int64{}
		}
		old, seen := s.Counters[name]
		switch {
		case !seen:
			s.Counters[name] = int64(v)
		case name == "thread_min":
			s.Counters[name] = min(old, int64(v))
		case name == "thread_max", name == "thread_median",
			name == "thread_rate_mhz", name == "clock_late_ns":
			s.Counters[name] = max(old, int64(v))
		default:
			s.Counters[name] += int64(v)
		}
	}
	b.handler.Merge(&p.handler)
}

// leastDelay is the shortest time without a processor that the summary shows, in nanoseconds summed
// over all threads.
const leastDelay = 100_000_000

// leastLongStop is the time of a stop, in nanoseconds, that the copy of a stack alone hardly takes. On a busy
// machine, the thread loses its CPU meanwhile.
const leastLongStop = 1_000_000

// sampledLines returns lines about the counters for the summary, nil if there are no counters.
func sampledLines(c map[string]int64, handler *wire.Histogram) (out []string) {
	if c == nil {
		return nil
	}
	say := func(format string, args ...any) { out = append(out, sentence(format, args...)) }
	if c["shared"] > 0 {
		say("samples by another recording of the process: %v CPU, %v of waiting threads", c["timed"],
			c["outside"])
		return append(out, countLines(c, sampleCounts)...)
	}
	if n := c["suspended"]; n > 0 {
		say("threads stopped %s; %s of idle threads taken without a stop", counted(n, "time"),
			counted(c["rests"], "sample"))
	} else {
		copied := ""
		if n := c["copied"]; n > 0 {
			copied = sentence(" (%v copied by the kernel)", n)
		}
		say("samples by kind: %v CPU%s, %v blocked (read without a signal), %v idle",
			c["timed"], copied, c["outside"], c["rests"])
	}
	if handler.Count() > 0 {
		note, p99 := "", handler.Quantile(0.99)
		if p99 >= leastLongStop {
			note = "; this includes time without a CPU"
		}
		say("a thread was stopped for %v µs (p50), %v µs (p99)%s", int64(handler.Quantile(0.5)+500)/1000,
			int64(p99+500)/1000, note)
	}
	if n := c["delayed_ns"]; n >= leastDelay {
		say("threads were ready to run but had no CPU for %v ms", n/1e6)
	}
	if c["suspended"] == 0 {
		if n := c["timed"] - c["copied"]; n > 0 {
			say("signals: %v by the clock (%s), %v sent by seedwalk", n,
				counted(c["armed"], "thread"), c["asked"])
		} else {
			say("signals: %v sent by seedwalk", c["asked"])
		}
	}
	if n := c["reads"]; n > 0 {
		say("memory read through the probe: %s, %v µs each, %v µs of that in the program", counted(n, "read"),
			c["read_ns"]/n/1000, c["read_copy_ns"]/n/1000)
	}
	return append(append(out, countLines(c, sampleCounts)...), eventLines(c)...)
}

// sampleCounts are the lines about samples that were not taken, or not completely.
var sampleCounts = []countLine{
	{"reads_lost", "memory read", "that no thread answered"},
	{"dropped", "sample", "dropped: the ring buffer was full" + ofSamples},
	{"unproven", "sample", "cut off at managed code: the runtime's tables could not be read"},
	{"late", "sample", "skipped: the process had ended" + ofSamples},
	{"uncopied", "CPU sample",
		"in the kernel, not located: the copied stack was too short (at most 64 KB) or could not be walked"},
	{"changed", "read of a blocked thread|reads of blocked threads",
		"discarded: the thread woke up; retried later"},
	{"deaf", "signal", "not sent: the thread blocks it or has one pending"},
	{"unsent", "signal", "refused by the kernel"},
	{"relayed", "signal", "sent through the runtime's handler: a caught fault left the probe's own signal masked"},
	{"timer_refused", "thread", "without a timer: the kernel refused it"},
	{"no_slot", "thread", "not sampled: the probe has room for 4,096 threads"},
	{"async_joined", "sample", "of async code with its callers, or known to have none"},
	{"async_moved", "sample", "of async code without callers: a collection moved objects"},
	{"async_new", "sample", "of async code without callers: a type or a frame was seen for the first time"},
	{"async_late", "sample", "of async code without callers: in the kernel, or before the heap was known, and the thread has continued since"},
	{"async_cut", "sample", "of async code without callers: the chain was too long, or of an unknown kind"},
	{"async_lost", "sample", "of async code without callers: the object of the async method was not found"},
	{"unsampled", "thread", "without a sample: the recording was too short"},
	{"hidden", "read of a thread's state|reads of threads' states", "refused by the kernel"},
	{"unreadable", "stack", "skipped: the memory could not be read" + ofSamples},
	{"stubs", "read of a blocked thread|reads of blocked threads",
		"discarded: the thread was in a stub of the runtime"},
	{"held", "thread", "already stopped by a collection or a debugger"},
	{"stopped", "timer", "stopped by the probe: the tool was too slow"},
	{"unnamed", "method", "without a name: shown as managed code at its address, or by a number"},
}
