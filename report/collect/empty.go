package collect

import (
	"fmt"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// WhyEmpty reports why a process has no samples, "" if that is not known. The best explanation is a stream
// that was truncated, then the clocks, then notes, which may be about something else.
func (p *Process) WhyEmpty() string {
	if line := p.end(); line != "" {
		return line
	}
	if line := p.idle(); line != "" || len(p.notes) == 0 {
		return line
	}
	return p.notes[0]
}

// idle reports why there are no samples of a process, "" if that is not known.
func (p *Process) idle() string {
	where := fmt.Sprintf("process %d (%s) ", p.PID, p.Name)
	rounds, engine := p.counters[wire.StatEngine+"rounds"]
	switch {
	case p.counters[wire.StatEngine+"hidden"] > 0:
		return where + "has threads that the kernel does not permit seedwalk to read"
	case p.clock != nil:
		return where + p.unsampled()
	case !engine, strings.HasPrefix(p.farewell, "the process ended"):
		return ""
	}
	return fmt.Sprintf("%swas polled %d times, and none of its threads ran or could be read",
		where, rounds)
}

// unsampled describes how much CPU time a process without samples has used, and why
// none of it was sampled.
func (p *Process) unsampled() string {
	a := newAccount(p, nil)
	used, every := time.Duration(p.clock.CPUNanos), time.Duration(a.period)
	if used < every {
		return fmt.Sprintf("used %s of CPU time while it was recorded, less than the %s between two samples: record longer, or with a higher --rate", roundTime(used), roundTime(every))
	}
	a.threads()
	var causes []string
	for cause, nanos := range a.missing {
		if nanos > 0 {
			causes = append(causes, export.Causes[cause]+" "+roundTime(time.Duration(nanos)))
		}
	}
	return fmt.Sprintf("used %s of CPU time, and none of it was sampled: %s",
		roundTime(used), strings.Join(causes, ", "))
}

// roundTime formats a time with the precision that a reader needs.
func roundTime(d time.Duration) string {
	if d >= time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
