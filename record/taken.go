package record

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/wire"
)

// probePrefix begins the keys of what an engine outside counts.
const probePrefix = "probe_"

// handlerKey is the time that the probe's handler took.
const handlerKey = "probe_handler_ns"

// taken adds a process's counters to the profile's. Those of threads are of one
// process: the least and the most of all are kept.
func (b *builder) taken(p *process) {
	s := &b.p.Stats
	for key, v := range p.counters {
		name, ok := strings.CutPrefix(key, probePrefix)
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
		case name == "thread_max", name == "thread_median", name == "thread_rate_mhz":
			s.Counters[name] = max(old, int64(v))
		default:
			s.Counters[name] += int64(v)
		}
	}
	b.handler.Merge(&p.handler)
}

// takenLines tell people what the counters mean.
func takenLines(c map[string]int64, handler *wire.Histogram) (out []string) {
	if c == nil {
		return nil
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := c["suspended"]; n > 0 {
		say("threads were stopped %d times, and %d times seen to rest since", n, c["rests"])
	} else {
		say("samples by kind: %d CPU, %d blocked (read without a signal), %d idle", c["timed"], c["outside"], c["rests"])
	}
	if c["thread_max"] > 0 {
		say("%d to %d samples a thread, median %d", c["thread_min"], c["thread_max"], c["thread_median"])
	}
	if handler.Count() > 0 {
		say("a thread stood still for %d us (p50), %d us (p99)", (handler.Quantile(0.5)+500)/1000, (handler.Quantile(0.99)+500)/1000)
	}
	if c["suspended"] == 0 {
		say("signals: %d by the clock (%d threads), %d sent by seedwalk", c["timed"], c["armed"], c["asked"])
		out = append(out, clockLines(c)...)
	}
	if n := c["reads"]; n > 0 {
		say("memory read by the probe: %d reads, %d us each, %d in the program", n, c["read_ns"]/n/1000, c["read_copy_ns"]/n/1000)
	}
	for _, l := range []struct{ key, text string }{
		{"reads_lost", "reads of memory that no thread has answered"},
		{"dropped", "samples dropped: the ring was full"}, {"unproven", "samples that end at managed code: the runtime's tables could not be read"},
		{"late", "samples not walked: the process had ended"}, {"changed", "looks at blocked threads in vain: they went on meanwhile"},
		{"deaf", "signals not sent: the thread blocks them, or has one pending"}, {"unsent", "signals the kernel refused"},
		{"relayed", "signals sent through the runtime's own handler: a caught fault had left ours blocked"},
		{"timer_refused", "threads without a timer: the kernel refused it"}, {"no_slot", "threads not sampled: no slot is free"},
		{"unsampled", "threads without a sample: the recording was too short to reach them"},
		{"hidden", "looks at threads that the kernel does not permit"}, {"unreadable", "stacks that could not be read"},
		{"stubs", "looks at threads in the runtime's stubs in vain"}, {"held", "threads were stopped already, by a collection or a debugger"},
		{"stopped", "timers that the probe stopped, since the tool was too slow"}, {"unnamed", "methods without a name"},
	} {
		if n := c[l.key]; n > 0 {
			say("%d %s", n, l.text)
		}
	}
	return append(out, eventLines(c)...)
}
