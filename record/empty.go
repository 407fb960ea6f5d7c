package record

import (
	"fmt"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/export"
)

// empty reports in one line why a recording that profilers took part in has no samples and
// no events, "" if it has some.
func (r *run) empty() string {
	if c := r.srv.count(); c.Samples > 0 || c.Events > 0 {
		return ""
	}
	if r.noSamples() {
		return fmt.Sprintf("no events: none of what --events %s asked for happened while the process was recorded", r.opt.Events)
	}
	for _, p := range r.srv.all() {
		if line := p.whyEmpty(); line != "" {
			return "no samples: " + line
		}
	}
	return "no samples: the profiler connected and sent none; the command ended too soon, or none of its threads ran managed code"
}

// whyEmpty reports why a process has no samples, "" if that is not known. A stream that was
// cut off explains more than the clocks, and they explain more than notes, which may be of
// something else.
func (p *process) whyEmpty() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if line := p.end(); line != "" {
		return line
	}
	if line := p.idle(); line != "" || len(p.notes) == 0 {
		return line
	}
	return p.notes[0]
}

// idle reports why there are no samples of a process, "" if that is not known.
func (p *process) idle() string {
	where := fmt.Sprintf("process %d (%s) ", p.pid, p.name)
	rounds, engine := p.counters[probePrefix+"rounds"]
	switch {
	case p.counters[probePrefix+"hidden"] > 0:
		return where + "has threads that the kernel does not permit to be looked at"
	case p.clock != nil:
		return where + p.unsampled()
	case !engine, strings.HasPrefix(p.farewell, "the process ended"):
		return ""
	}
	return fmt.Sprintf("%swas looked at %d times, and none of its threads ran or could be read", where, rounds)
}

// unsampled reports in words how much processor time a process without samples has used,
// and why none of it was sampled.
func (p *process) unsampled() string {
	a := newAccount(p, nil)
	used, every := time.Duration(p.clock.CPUNanos), time.Duration(a.period)
	if used < every {
		return fmt.Sprintf("used %s of processor time while it was recorded, less than the %s between two samples: record longer, or with a higher --rate", roundTime(used), roundTime(every))
	}
	a.threads()
	a.rest()
	var causes []string
	for cause, nanos := range a.missing {
		if nanos > 0 {
			causes = append(causes, export.Causes[cause]+" "+roundTime(time.Duration(nanos)))
		}
	}
	return fmt.Sprintf("used %s of processor time, and none of it was sampled: %s", roundTime(used), strings.Join(causes, ", "))
}

// roundTime writes a time with a precision that a reader needs.
func roundTime(d time.Duration) string {
	if d >= time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
