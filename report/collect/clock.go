package collect

import (
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// clockKinds are the engine's counters of its clock, the best clock first.
var clockKinds = []struct {
	key  string
	kind export.ClockKind
}{{"clock_perf", export.ClockPerf}, {"clock_random", export.ClockRandom}, {"clock_timer", export.ClockTimer}}

// clockOf adds the clock of a process. Of several processes the worst kind and the greatest
// lateness are shown, and hits add up.
func (b *builder) clockOf(p *Process) {
	for _, k := range clockKinds {
		if p.counters[wire.StatEngine+k.key] == 0 {
			continue
		}
		c := b.p.Stats.Clock
		if c == nil {
			c = &export.Clock{}
			b.p.Stats.Clock = c
		}
		c.Kind = max(c.Kind, k.kind)
	}
	c := b.p.Stats.Clock
	if c == nil {
		return
	}
	kept, rejected := p.counters[wire.StatEngine+"clock_kept"], p.counters[wire.StatEngine+"clock_rejected"]
	c.UserOnly = c.UserOnly || p.counters[wire.StatEngine+"clock_user_only"] > 0
	c.LateP90 = max(c.LateP90, time.Duration(min(p.counters[wire.StatEngine+"clock_late_ns"], maxNanos)))
	c.Hits += int64(min(kept, maxNanos) + min(rejected, maxNanos))
	c.Rejected += int64(min(rejected, maxNanos))
}
