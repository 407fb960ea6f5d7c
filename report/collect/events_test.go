package collect

import (
	"fmt"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

func event(kind uint8, tid, nanos, bytes uint64, name, text string) *wire.Event {
	return &wire.Event{TID: tid, TimeUnixNano: 5e9, Kind: kind, Nanos: nanos, Bytes: bytes, Name: name,
		Text: text, Frames: []wire.Frame{{Kind: unwind.KindManaged, Method: 1, IP: 77}}}
}

// Events are summed up by kind, place, thread, owner and type, and are no samples.
func TestEventsSum(t *testing.T) {
	p := NewProcess(1, "p")
	for range 3 {
		p.Take(event(wire.EventWait, 1, 5e6, 0, "", ""))
	}
	p.Take(event(wire.EventMonitor, 1, 9e6, 0, "", ""))
	owned := event(wire.EventLock, 1, 7e6, 0, "", "")
	owned.Owner, owned.Gap = 3, 2
	p.Take(owned)
	open := event(wire.EventWait, 2, 1e9, 0, "", "")
	open.Flags = wire.EventOpen
	p.Take(open)
	p.Take(event(wire.EventAllocation, 1, 0, 100, "A", ""))
	p.Take(event(wire.EventAllocation, 1, 0, 200, "A", ""))
	p.Take(event(wire.EventException, 1, 0, 0, "E", "x"))
	p.Take(event(wire.NumEvents, 1, 1, 1, "", ""))
	p.Take(event(wire.EventCopy, 1, 1, 1, "", ""))
	p.Take(event(wire.EventQueue, 1, 4e6, 0, "", ""))
	p.Take(event(0, 1, 1, 1, "", ""))
	p.counters["probe_event_waits"] = 9
	b := newBuilder(nil)
	b.process(p)
	b.events(p, []export.Event{export.EventWait, export.EventLock, export.EventAllocation,
		export.EventException, export.EventQueue})
	want := []export.EventStats{{Event: export.EventWait, Seen: 9, Count: 5, Complete: 5,
		Sum: 1_024_000_000, Longest: 1e9, Open: 1},
		{Event: export.EventLock, Count: 1, Sum: 7e6, Longest: 7e6},
		{Event: export.EventAllocation, Count: 2, Complete: 2, Sum: 300},
		{Event: export.EventException, Count: 1, Complete: 1},
		{Event: export.EventQueue, Seen: 1, Count: 1, Complete: 1, Sum: 4e6, Longest: 4e6}}
	got := b.p.Stats.Events
	expect.True(t, fmt.Sprint(got) == fmt.Sprint(want), "%+v\nwant %+v", got, want)
	expect.True(t, b.p.Stats.Samples == 0 && len(b.p.Stacks) == 7 && len(b.p.Waits) == 8,
		"%d samples, %d stacks, %d waits", b.p.Stats.Samples, len(b.p.Stacks), len(b.p.Waits))
	expect.Equal(t, b.p.Check(), nil)
}

// A recording of events only lasts until the last one.
func TestDurationOfEvents(t *testing.T) {
	p := NewProcess(1, "p")
	p.Take(event(wire.EventLock, 1, 1e9, 0, "", ""))
	q := Build(&Info{Start: time.Unix(1, 0), Events: []export.Event{export.EventLock}}, []*Process{p}, nil)
	expect.Equal(t, q.Duration, 4*time.Second)
}

// A runtime that does not report waits has a note instead of a number of waits.
func TestUnseenWaits(t *testing.T) {
	for runtime, unseen := range map[string]bool{".NET 8.0.6": true, ".NET 9.0.5": false,
		".NET 10.0.9": false, "": false, "Mono": false} {
		p := NewProcess(7, "p")
		p.hello = &wire.Hello{Runtime: runtime}
		b := newBuilder(nil)
		b.events(p, []export.Event{export.EventWait, export.EventQueue})
		notes, rows := b.p.Stats.Notes, b.p.Stats.Events
		if why := p.UnseenWaits(); (why != "") != unseen || unseen != (len(notes) == 1 && notes[0] == why) ||
			unseen != (rows[0].Event != export.EventWait) {
			t.Errorf("%q: %q, notes %q, rows %v", runtime, why, notes, rows)
		}
	}
}

// Memory stays bounded: messages with a number in each are put together, and of the
// events with a time the longest are listed.
func TestEventsBounded(t *testing.T) {
	p := NewProcess(1, "p")
	for i := range maxTexts + 10 {
		p.Take(event(wire.EventException, 1, 0, 0, "E", fmt.Sprint(i)))
	}
	expect.True(t, len(p.stacks) == maxTexts+1 && p.stacks[maxTexts].count == 10 &&
		p.stacks[maxTexts].text == otherTexts, "%d stacks", len(p.stacks))
	for i := range 2*maxWaits + 5 {
		p.Take(event(wire.EventWait, 1, uint64(i), 0, "", ""))
	}
	longest := int64(0)
	for _, w := range p.waits {
		longest = max(longest, w.nanos)
	}
	expect.True(t, int64(len(p.waits))+p.unlisted == 2*maxWaits+5+maxTexts+10 && p.unlisted == maxWaits &&
		longest == 2*maxWaits+4,
		"%d waits listed, %d not, the longest %v", len(p.waits), p.unlisted, time.Duration(longest))
}
