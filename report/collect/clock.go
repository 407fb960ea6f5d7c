package collect

import (
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// clockOf adds the clock of a process. Of several processes the worst kind and the greatest
// lateness are shown, and hits add up.
func (b *builder) clockOf(p *Process) {
	known := false
	for kind := export.ClockPerf; kind < export.NumClocks; kind++ {
		if p.counters[wire.StatEngine+"clock_"+kind.String()] == 0 {
			continue
		}
		c := b.p.Stats.Clock
		if c == nil {
			c = &export.Clock{}
			b.p.Stats.Clock = c
		}
		c.Kind = max(c.Kind, kind)
		known = true
	}
	c := b.p.Stats.Clock
	if c == nil {
		return
	}
	kept, rejected := p.counters[wire.StatEngine+"clock_kept"], p.counters[wire.StatEngine+"clock_rejected"]
	c.UserOnly = c.UserOnly || p.counters[wire.StatEngine+"clock_user_only"] > 0
	if known {
		c.Processes++
	}
	if p.counters[wire.StatEngine+"clock_stretches"] > 0 {
		c.Stretches++
	}
	if p.counters[wire.StatEngine+"clock_timers"] > 0 {
		c.Timers++
	}
	c.LateP90 = max(c.LateP90, time.Duration(min(p.counters[wire.StatEngine+"clock_late_ns"], maxNanos)))
	c.Hits += int64(min(kept, maxNanos) + min(rejected, maxNanos))
	c.Rejected += int64(min(rejected, maxNanos))
}
