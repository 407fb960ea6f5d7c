package export

import (
	"cmp"
	"slices"

	"github.com/seedwalk/seedwalk/report/export/category"
)

// lane is a row of the time line: when something that concerns the whole process happened. Its
// spans are in order and do not touch.
type lane struct {
	event Event // NoEvent = spinning
	spans []span
}

// span is a time in microseconds since the start of the recording.
type span struct{ from, to int64 }

// laneSpans bounds the spans of a lane: closer ones are merged, since no screen shows them apart.
const laneSpans = 2000

// laneNames are the lanes by what they show. Waits have none: most threads wait most of the time.
var laneNames = [NumEvents]string{EventPause: "GC pauses", EventJIT: "JIT",
	EventException: "exceptions", EventLock: "locks",
	EventQueue: "thread pool queue", EventStarved: "thread pool starved", NoEvent: "spinning"}

// laneOrder is from top to bottom.
var laneOrder = []Event{EventPause, EventStarved, EventQueue, EventLock, NoEvent, EventException, EventJIT}

// lanes returns the lanes that are not empty.
func (p *Profile) lanes() (out []lane) {
	var spans [NumEvents][]span
	for _, w := range p.Waits {
		from := w.Start.Sub(p.Start).Microseconds()
		event := p.Stacks[w.Stack].Event
		spans[event] = append(spans[event], span{max(0, from), max(0, from+w.Nanos/1000)})
	}
	spans[NoEvent] = p.spinning()
	for _, event := range laneOrder {
		if s := merged(spans[event], p.Duration.Microseconds()/laneSpans); len(s) > 0 {
			out = append(out, lane{event, s})
		}
	}
	return out
}

// spinning returns when threads waited without being blocked, as their samples saw it.
func (p *Profile) spinning() (out []span) {
	categories := p.stackCategories()
	for i := range p.Samples {
		s := &p.Samples[i]
		if categories[s.Stack] == category.Spinning {
			at := max(0, (s.At-p.Start.UnixNano())/1000)
			out = append(out, span{max(0, at-s.Wall/1000), at})
		}
	}
	return out
}

// merged sorts spans and merges those with at most gap between them.
func merged(all []span, gap int64) []span {
	slices.SortFunc(all, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to+gap {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}
