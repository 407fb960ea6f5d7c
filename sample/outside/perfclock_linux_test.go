package outside

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// A young thread's samples are as many per processor time as any other's: the part of its
// overflows that are kept is the part that its period is of the whole one.
func TestYoungPeriod(t *testing.T) {
	for _, c := range []struct {
		hertz       uint64
		least, most uint64 // of the young period
	}{
		{1, 244140, 400000}, {10, 73242, 400000}, {99, 97000, 400000}, {997, 99000, 400000}, {1999, 99000, 250125}, {5000, 99000, 200000}, {10000, 100000, 100000},
	} {
		period := 1000000000 / c.hertz
		for _, r := range []uint64{0, 1, 77777, 150000, mostYoung - leastYoung - 1} {
			young, keep := youngPeriod(period, func(n uint64) uint64 { return min(r, n-1) })
			if keep == 0 {
				if young != period || period > 2*mostYoung+1 {
					t.Errorf("%d Hz, %d: all of period %d", c.hertz, r, young)
				}
				continue
			}
			if got := young * probe.Thinning; got > period*uint64(keep) || got+probe.Thinning < period*uint64(keep) {
				t.Errorf("%d Hz, %d: %d of %d overflows, each %d ns", c.hertz, r, keep, probe.Thinning, young)
			}
			if young < c.least || young > c.most || keep >= probe.Thinning {
				t.Errorf("%d Hz, %d: period %d, want %d to %d; %d kept", c.hertz, r, young, c.least, c.most, keep)
			}
		}
	}
}

// fakeEvent is an event of which only the count matters.
type fakeEvent struct {
	count  uint64
	period uint64
	err    error
}

func (f *fakeEvent) FD() int                  { return 7 }
func (f *fakeEvent) SetPeriod(n uint64) error { f.period = n; return nil }
func (f *fakeEvent) Count() (uint64, error)   { return f.count, f.err }
func (f *fakeEvent) Close() error             { return nil }

// What an event is short of samples is the kernel's time, once it has its whole period and
// enough of them are expected. The share is that of all the thread's time.
func TestInKernel(t *testing.T) {
	for _, c := range []struct {
		name        string
		k           task
		spent, want uint64
	}{
		{"none missing", task{event: &fakeEvent{count: 5100}, atSwitch: 100, hits: 50}, 5100, 0},
		{"a fifth missing", task{event: &fakeEvent{count: 5100}, atSwitch: 100, hits: 40}, 6000, 1200},
		{"more than expected", task{event: &fakeEvent{count: 5100}, atSwitch: 100, hits: 60}, 5100, 0},
		{"all missing", task{event: &fakeEvent{count: 5100}, atSwitch: 100}, 5100, 5100},
		{"too few expected", task{event: &fakeEvent{count: 1600}, atSwitch: 100, hits: 1}, 1600, 0},
		{"young", task{event: &fakeEvent{count: 5100}, young: true}, 5100, 0},
		{"no count", task{event: &fakeEvent{count: 5100, err: errors.New("gone")}}, 5100, 0},
		{"no event", task{}, 5100, 0},
	} {
		if got := c.k.inKernel(c.spent, 100); got != c.want {
			t.Errorf("%s: %d of %d, want %d", c.name, got, c.spent, c.want)
		}
	}
}

// A thread's processor time is its event's, to the thread's end, or its schedstat's, without
// what it had used before the recording.
func TestSpent(t *testing.T) {
	for _, c := range []struct {
		name string
		k    task
		want uint64
	}{
		{"schedstat", task{last: counters{cpu: 500}, base: 100}, 400},
		{"an event that has seen more", task{last: counters{cpu: 500}, base: 100, atEvent: 300, event: &fakeEvent{count: 900}}, 1100},
		{"an event that has seen less", task{last: counters{cpu: 500}, base: 100, atEvent: 10, event: &fakeEvent{count: 20}}, 400},
		{"an event without a count", task{last: counters{cpu: 500}, atEvent: 300, event: &fakeEvent{count: 900, err: errors.New("gone")}}, 500},
		{"nothing since", task{last: counters{cpu: 50}, base: 100}, 0},
	} {
		if got := c.k.spent(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A thread that has used many periods gets the whole one, and its hits are counted anew.
func TestNoLongerYoung(t *testing.T) {
	event := &fakeEvent{}
	k := &task{event: event, young: true, slot: 0}
	e := &Engine{sampler: sampler{period: 1000}, file: &probe.File{}}
	event.count = youngPeriods*1000 - 1
	if e.overflowed(k); !k.young || event.period != 0 || k.hits != 1 {
		t.Errorf("young %v, period %d, hits %d", k.young, event.period, k.hits)
	}
	k.slot = -1
	event.count++
	if e.overflowed(k); k.young || event.period != 1000 || k.hits != 0 || k.atSwitch != event.count {
		t.Errorf("young %v, period %d, hits %d", k.young, event.period, k.hits)
	}
}
