package inflow

import (
	"bytes"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A sample that is taken after the end of a recording counts with its time before the end: a
// resting thread has one sample in seconds or minutes.
func TestCutAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name          string
		taken         int64
		wall, cpu     uint64
		want, samples uint64
	}{
		{"before", 900, 700, 0, 700, 1},
		{"at the end", 1000, 700, 5, 700, 1},
		{"before and after", 1200, 700, 0, 500, 1},
		{"after", 1200, 200, 0, 0, 0},
		{"none of its time is known", 1200, 0, 0, 0, 0},
		{"CPU time, of its moment", 1200, 700, 10, 0, 0},
	} {
		p := New(1, "x")
		p.StopAt(1000)
		s := &wire.Sample{TID: 1, TimeUnixNano: c.taken, WallNanos: c.wall, CPUNanos: c.cpu}
		over := p.over(s)
		if !over {
			p.Receive(s)
		}
		info := collect.Info{}
		got := collect.Build(&info, []*collect.Process{p.Process}, nil)
		var wall, last int64
		for i := range got.Samples {
			wall += got.Samples[i].Wall
			last = max(last, got.Samples[i].At)
		}
		expect.True(t, over == (c.samples == 0) && got.Stats.Samples == int64(c.samples) &&
			wall == int64(c.want) && last <= 1000,
			"%s: %d samples of %d, the last at %d", c.name, got.Stats.Samples, wall, last)
	}
}

// On a busy machine, the tool reads the threads' clocks some time after the recording's end. The CPU time in
// between is not part of the profile, because the samples of that time are dropped.
func TestLateClocks(t *testing.T) {
	var w wire.Writer
	w.Hello(&wire.Hello{PID: 1, RateMilliHz: 100_000})
	for i, tid := range []uint64{1, 1, 1, 1, 1, 2, 2, 2} {
		at := []int64{1, 2, 3, 1001, 1002, 4, 5, 1003}[i]
		w.Sample(&wire.Sample{TID: tid, TimeUnixNano: at, CPUNanos: 10e6, WallNanos: 10e6,
			Frames: []wire.Frame{{IP: 1}}})
	}
	for tid, nanos := range map[uint64]uint64{1: 50e6, 2: 30e6} {
		w.Usage(&wire.Usage{TID: tid, CPUNanos: nanos})
	}
	w.Usage(&wire.Usage{TID: 3, CPUNanos: 10e6, Cause: wire.CauseNoRoom})
	w.Usage(&wire.Usage{TID: wire.ProcessTID, CPUNanos: 90e6})
	w.Bye("ended")
	p := New(1, "x")
	p.StopAt(1000)
	p.Read(bytes.NewReader(w.Bytes()))
	got := collect.Build(&collect.Info{}, []*collect.Process{p.Process}, nil)
	sums := map[int]int64{}
	for i := range got.Stacks {
		sums[got.Threads[got.Stacks[i].Thread].ID] += got.Stacks[i].CPUNanos
	}
	expect.Equal(t, got.Stats.CPU.Process, 60e6)
	expect.Equal(t, got.Stats.CPU.Profile, 50e6)
	expect.True(t, sums[1] == 30e6 && sums[2] == 20e6, "%v", sums)
}

// The time of a recording runs from the first sample, even if that sample was held until its stack
// could be walked. The recording does not include earlier time.
func TestTimeRunsFromFirstSample(t *testing.T) {
	p := New(1, "app")
	var began []time.Time
	p.Prove, p.Timed, p.Begin = true, time.Hour, func(at time.Time) { began = append(began, at) }
	p.connected = time.Now().Add(-10 * time.Second)
	first := p.connected.Add(4 * time.Second)
	p.Receive(&wire.Hello{StartUnixNano: p.connected.UnixNano()})
	must.Equal(t, len(began), 0, "the time runs before there is a sample")
	for i := range 3 {
		at := first.Add(time.Duration(i) * time.Second)
		p.Receive(&wire.Sample{TID: 7, TimeUnixNano: at.UnixNano(), WallNanos: uint64(5 * time.Second)})
	}
	p.Receive(&wire.Sample{TID: 7, TimeUnixNano: time.Now().Add(time.Hour).UnixNano()}) // another clock
	expect.True(t, len(began) == 4 && began[0].Equal(time.Unix(0, first.UnixNano())) &&
		!began[3].After(time.Now()), "began %v, first sample %v", began, first)
	b := collect.Build(&collect.Info{AtFirst: true}, []*collect.Process{p.Process}, nil)
	expect.Equal(t, time.Duration(b.Stacks[0].WallNanos), 3*time.Second, "time of samples of 0s, 1s, and 2s")
	expect.True(t, b.Duration >= 2*time.Second && b.Start.Equal(time.Unix(0, first.UnixNano())),
		"%v from %v, want 2s from %v", b.Duration, b.Start, first)
}

// Held samples arrive together. Samples after the end are dropped, even if StopAt was not called yet.
func TestHeldSamplesEndInTime(t *testing.T) {
	p := New(1, "app")
	p.Prove, p.Timed = true, 2*time.Second
	first := time.Now().Add(-time.Minute)
	for i := range 5 {
		s := &wire.Sample{TID: 7,
			TimeUnixNano: first.Add(time.Duration(i) * time.Second).UnixNano(), CPUNanos: 1}
		if late := p.over(s); late != (i > 2) {
			t.Errorf("a sample after %d s of 2 s is late: %v", i, late)
		} else if !late {
			p.Receive(s)
		}
	}
	expect.Equal(t, p.Counts().Samples, 3, "samples")
}
