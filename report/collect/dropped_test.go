package collect

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/unwind"
)

// Every type has its exact total. The error of a place is at most the dropped weight.
func TestDropped(t *testing.T) {
	p := NewProcess(1, "p")
	at := func(ip uint64, e *wire.Event) {
		e.Frames = []wire.Frame{{Kind: unwind.KindManaged, Method: uint32(ip), IP: ip}}
		p.Take(e)
	}
	long := strings.Repeat("n", 300)
	for range 3 {
		at(1, event(wire.EventAllocation, 1, 0, 100, "A", ""))
	}
	at(2, event(wire.EventAllocation, 1, 0, 101, "A", ""))
	at(3, event(wire.EventAllocation, 1, 0, 7, "B", ""))
	at(3, event(wire.EventAllocation, 1, 0, 9, long, ""))
	for range 2 {
		at(4, event(wire.EventException, 1, 0, 0, "A", "x"))
	}
	for _, d := range []wire.Dropped{
		{Kind: wire.EventAllocation, Name: "A", Count: 1, Bytes: 1},
		{Kind: wire.EventAllocation, Name: "A", Count: 10, Bytes: 1000}, // replaces
		{Kind: wire.EventAllocation, Name: long[:wire.MaxDroppedName], Count: 1, Bytes: 5},
		{Kind: wire.EventAllocation, Name: "none", Count: 2, Bytes: 50},
		{Kind: wire.EventAllocation, Count: 1, Bytes: 60},
		{Kind: wire.EventException, Name: "A", Count: 5},
		{Kind: wire.EventWait, Name: "A", Count: 5},
	} {
		p.Take(&d)
	}
	b := newBuilder(nil)
	b.process(p)
	b.events(p, []export.Event{export.EventAllocation, export.EventException})
	type total struct {
		event export.Event
		name  string
	}
	counts, sums := map[total]int64{}, map[total]int64{}
	for i := range b.p.Stacks {
		s := &b.p.Stacks[i]
		counts[total{s.Event, s.Type}] += s.Count
		sums[total{s.Event, s.Type}] += s.Sum
	}
	for _, c := range []struct {
		total
		count, sum int64
	}{
		{total{export.EventAllocation, "A"}, 14, 1401}, {total{export.EventAllocation, "B"}, 1, 7}, {total{export.EventAllocation, long}, 2, 14},
		{total{export.EventAllocation, "none"}, 2, 50}, {total{export.EventAllocation, otherTypes}, 1, 60}, {total{export.EventException, "A"}, 7, 0},
	} {
		if counts[c.total] != c.count || sums[c.total] != c.sum {
			t.Errorf("%v: %d events, %d bytes, want %d and %d", c.total, counts[c.total], sums[c.total], c.count, c.sum)
		}
	}
	if s := b.p.Stacks[0].Sum; s < 300+740 || s > 300+760 {
		t.Errorf("the place with three quarters of A has %d bytes", s)
	}
	if s := b.p.Stats.Events[0]; s.Sum != 1401+7+14+50+60 || s.Count != 6 {
		t.Errorf("%+v", s)
	}
	notes := strings.Join(b.p.Stats.Notes, "\n")
	if !strings.Contains(notes, "the stacks of 19 events were dropped") || !strings.Contains(notes, "at most: A 0.0 MB, (other types) 0.0 MB") {
		t.Error(notes)
	}
	if err := b.p.Check(); err != nil {
		t.Error(err)
	}
}

// No sum, however large, breaks the division.
func TestApportionBounds(t *testing.T) {
	for _, a := range []apportion{{}, {of: 1, add: 1 << 56}, {of: 1<<64 - 1, add: 1 << 56}, {of: 5}} {
		a.share(1 << 63)
		a.share(1<<64 - 1)
	}
}

// TestSampledNote: if objects are sampled at random, the note bounds the error by the number of samples,
// including dropped ones.
func TestSampledNote(t *testing.T) {
	p := NewProcess(7, "p")
	for range 90 {
		p.Take(event(wire.EventAllocation, 1, 0, 100, "A", ""))
	}
	p.Take(event(wire.EventAllocation, 1, 0, 5, "B", ""))
	p.Take(&wire.Dropped{Kind: wire.EventAllocation, Name: "A", Count: 810, Bytes: 81000})
	notes := func() []string {
		b := newBuilder([]*Process{p})
		b.process(p)
		return b.p.Stats.Notes
	}
	if n := notes(); len(n) != 1 {
		t.Errorf("ticks: %q", n)
	}
	p.counters[wire.StatEngine+"event_alloc_sampled"] = 91
	if n := notes(); len(n) != 2 || !strings.HasSuffix(n[1], ": A 10 %, B 300 %") {
		t.Errorf("samples: %q", n)
	}
}
