package collect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// eventCounters are the counters of all events of a kind, recorded or not.
var eventCounters = [export.NumEvents]string{export.EventWait: "event_waits", export.EventLock: "event_locks",
	export.EventAllocation: "event_allocs", export.EventException: "event_exceptions"}

// firstWithWaits is the first major version of .NET that reports waits for wait handles and tasks.
const firstWithWaits = 9

// UnseenWaits returns why the process cannot report its waits, "" if it can or if its version is unknown.
func (p *Process) UnseenWaits() string {
	major := 0
	if p.hello != nil {
		fmt.Sscanf(p.hello.Runtime, ".NET %d.", &major)
	}
	if major == 0 || major >= firstWithWaits {
		return ""
	}
	return fmt.Sprintf("waits of process %d are unknown: .NET %d reports waits for locks only (--events locks), .NET %d and later report all", p.PID, major, firstWithWaits)
}

// eventSum sums up a process's events of a kind.
type eventSum struct{ count, complete, sum, longest, open int64 }

// maxTexts limits the distinct messages: many contain a number.
const maxTexts = 1 << 12

const otherTexts = "(other messages)"

// event takes one event of the runtime.
func (p *Process) event(m *wire.Event) {
	if m.Kind >= wire.NumEvents || exported[m.Kind] == export.NoEvent {
		return
	}
	p.seen[m.TID] = true
	p.last = max(p.last, m.TimeUnixNano)
	p.row = p.row[:0]
	for i := range m.Frames {
		p.row = append(p.row, p.frame(&m.Frames[i]))
	}
	nanos := min(m.Nanos, maxNanos)
	amount := nanos
	if m.Kind == wire.EventAllocation {
		amount = m.Bytes
	}
	open := m.Flags&wire.EventOpen != 0
	s := &p.events[m.Kind]
	s.count++
	s.sum = int64(plus(uint64(s.sum), amount))
	s.longest = max(s.longest, int64(nanos))
	if m.Gap == 0 {
		s.complete++
	}
	if open {
		s.open++
	}
	i, ok := p.stackOf(&stack{tid: m.TID, gap: m.Gap, event: m.Kind, open: open, owner: m.Owner,
		name: m.Name, text: p.textOf(m.Text)})
	if !ok {
		p.overflow++
		return
	}
	st := &p.stacks[i]
	st.count++
	st.sum = plus(st.sum, amount)
	st.longest = max(st.longest, nanos)
	if m.Kind != wire.EventAllocation {
		p.list(oneWait{i, m.TimeUnixNano, int64(nanos)})
	}
}

// oneWait is an event with a time; end is in unix nanoseconds.
type oneWait struct {
	stack      int32
	end, nanos int64
}

// maxWaits bounds the waits that are listed one by one.
const maxWaits = 1 << 15

// list keeps a wait. The list has the longest waits, at most twice maxWaits.
func (p *Process) list(w oneWait) {
	if p.waits = append(p.waits, w); len(p.waits) < 2*maxWaits {
		return
	}
	slices.SortFunc(p.waits, func(a, b oneWait) int { return cmp.Compare(b.nanos, a.nanos) })
	p.unlisted += int64(len(p.waits) - maxWaits)
	p.waits = p.waits[:maxWaits]
}

// textOf returns a message, or otherTexts if there are too many distinct ones.
func (p *Process) textOf(text string) string {
	if text == "" || p.texts[text] {
		return text
	}
	if len(p.texts) >= maxTexts {
		return otherTexts
	}
	if p.texts == nil {
		p.texts = map[string]bool{}
	}
	p.texts[text] = true
	return text
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// exported maps wire's kinds of events to those of a profile; NoEvent = not kept.
var exported = [wire.NumEvents]export.Event{wire.EventWait: export.EventWait,
	wire.EventMonitor: export.EventWait, wire.EventLock: export.EventLock,
	wire.EventAllocation: export.EventAllocation, wire.EventException: export.EventException,
	wire.EventQueue: export.EventQueue, wire.EventStarved: export.EventStarved}

// describe writes the kind, type, and message of a stack.
func (s *stack) describe(out *export.Stack) {
	if s.event == 0 {
		return
	}
	out.Event, out.Monitor = exported[s.event], s.event == wire.EventMonitor
	out.Sum, out.Longest, out.Open, out.Owner = int64(s.sum), int64(s.longest), s.open, int(s.owner)
	out.Type, out.Message = s.name, s.text
}

// waits adds a process's listed waits, and sorts all by start. first is the process's first stack.
func (b *builder) waits(p *Process, first int) {
	b.p.Stats.Unlisted += p.unlisted
	for _, w := range p.waits {
		b.p.Waits = append(b.p.Waits,
			export.Wait{Stack: first + int(w.stack), Start: time.Unix(0, w.end-w.nanos), Nanos: w.nanos})
	}
	slices.SortStableFunc(b.p.Waits, func(x, y export.Wait) int { return x.Start.Compare(y.Start) })
}

// events adds the sums of a process's events, of the kinds that were requested.
func (b *builder) events(p *Process, want []export.Event) {
	s := &b.p.Stats
	for _, kind := range want {
		if kind == export.NoEvent || kind >= export.NumEvents {
			continue
		}
		if why := p.UnseenWaits(); kind == export.EventWait && why != "" {
			s.Notes = append(s.Notes, why)
			continue
		}
		i := slices.IndexFunc(s.Events, func(e export.EventStats) bool { return e.Event == kind })
		if i < 0 {
			i = len(s.Events)
			s.Events = append(s.Events, export.EventStats{Event: kind})
		}
		e := &s.Events[i]
		if name := eventCounters[kind]; name != "" {
			e.Seen += int64(p.counters[wire.StatEngine+name])
		}
		for _, d := range p.drops {
			if exported[d.Kind] == kind {
				e.Sum += int64(d.Bytes)
			}
		}
		for k := range p.events {
			if exported[k] == kind {
				sum := &p.events[k]
				e.Count, e.Complete, e.Sum, e.Open = e.Count+sum.count, e.Complete+sum.complete,
					e.Sum+sum.sum, e.Open+sum.open
				e.Longest = max(e.Longest, sum.longest)
				if eventCounters[kind] == "" {
					e.Seen += sum.count
				}
			}
		}
	}
}

// eventLines describe the runtime's events for the summary.
func eventLines(c map[string]int64) (out []string) {
	if c["event_waits"]+c["event_locks"]+c["event_allocs"]+c["event_exceptions"] == 0 {
		return nil
	}
	say := func(format string, args ...any) { out = append(out, sentence(format, args...)) }
	say("events: %s, %s, %s, %s; %v lost", counted(c["event_waits"], "wait"),
		counted(c["event_locks"], "lock"),
		counted(c["event_allocs"], "allocation sample"), counted(c["event_exceptions"], "exception"),
		c["event_missed"]+c["event_crowded"])
	if n := c["event_copies"]; n > 0 {
		say("%s copied in %.1f µs on average", counted(n, "stack"),
			float64(c["event_copy_ns"])/float64(n)/1000)
	}
	return append(out, countLines(c, eventCounts)...)
}

// eventCounts are the lines about events that were not recorded completely.
var eventCounts = []countLine{
	{"event_brief", "wait or lock|waits and locks", "shorter than --wait-min: counted only"},
	{"event_inner", "wait", "inside a lock: part of the lock's time"},
	{"event_early", "wait", "already open when the recording began"},
	{"event_missed", "event", "lost: the ring buffer was full"},
	{"event_crowded", "wait", "lost: too many threads waited at once"},
	{"event_unwalked", "event",
		"without a stack: the runtime's tables were not verified yet, or the process had ended"},
	{"event_otherwise", "event", "delivered in an unknown way: the runtime's own frames are still on top"},
	{"event_malformed", "malformed event", "from the runtime"},
}
