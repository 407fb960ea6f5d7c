package threads

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		text string
		want Counters
		ok   bool
	}{
		{"123 45 6\n", Counters{123, 45, 6}, true},
		{"0 0 0\n", Counters{}, true},
		{"123 45\n", Counters{123, 45, 0}, false},
		{"", Counters{}, false},
		{"1 2 3 4\n", Counters{1, 2, 3}, false},
	} {
		got, ok := parseCounters([]byte(c.text))
		expect.True(t, ok == c.ok && got == c.want, "%q: %+v, %v", c.text, got, ok)
	}
}

func TestWhere(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   Where
		sp, ip uint64
	}{
		{"running\n", Running, 0, 0},
		{"202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd10 0x7f0123\n", Blocked, 0x7ffd10, 0x7f0123},
		{"-1 0x7ffd10 0x7f0123\n", Blocked, 0x7ffd10, 0x7f0123},
		{"-1 sp pc\n", Running, 0, 0},
		{"", Running, 0, 0},
		{"0x7ffd10 0x7f0123\n", Running, 0, 0},
		{"0x7f0123\n", Running, 0, 0},
		{"-1 0x 0x7f0123\n", Running, 0, 0},
		{"-1 0x7ffd10 0x11112222333344445\n", Running, 0, 0},
		{"-1 0xffffffffffffffff 0x8000000000000000", Blocked, 1<<64 - 1, 1 << 63},
	} {
		w, sp, ip := parseWhere([]byte(c.text))
		expect.True(t, w == c.want && sp == c.sp && ip == c.ip, "%q: %v %#x %#x", c.text, w, sp, ip)
	}
}

func TestSignals(t *testing.T) {
	const head = "Name:\tSigBlk: 7\nThreads:\t4\nSigQ:\t2/95000\n"
	for _, c := range []struct {
		name, text string
		want       signals
		ok         bool
	}{
		{"usual", head + "SigPnd:\t0000000000000200\nShdPnd:\t0000000000000001\nSigBlk:\tfffffffe7ffbfeff\nSigIgn:\t0000000000001000\n", signals{0xfffffffe7ffbfeff, 0x200}, true},
		{"none", head + "SigPnd:\t0\nSigBlk:\t0\n", signals{}, true},
		{"cut in the mask", head + "SigPnd:\t0000000000000200\nSigBlk:\tffff", signals{}, false},
		{"cut before", head + "SigPnd:\t0000000000000200\n", signals{}, false},
		{"no number", head + "SigPnd:\tx\nSigBlk:\t0\n", signals{}, false},
		{"nothing", "", signals{}, false},
	} {
		if got, ok := parseSignals([]byte(c.text)); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
}

// A name is read again soon after a thread's start, and then less and less often.
func TestRename(t *testing.T) {
	k, read := Task{Born: 1000e9}, []int64(nil)
	for ms := int64(0); ms <= 100_000; ms += 50 {
		if k.Rename(k.Born + ms*1e6) {
			read = append(read, ms)
		}
	}
	expect.Slices(t, read, []int64{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200},
		"milliseconds after which it was read")
}

// The periods of threads differ by up to an eighth, and are the usual one on average.
func TestPeriod(t *testing.T) {
	for _, usual := range []int64{1e6, 1e7, 1e9} {
		least, most, sum := uint64(1<<63), uint64(0), 0.0
		const tids = 1 << 12
		for tid := range uint32(tids) {
			p := (&Task{TID: 4000 + tid}).Period(usual)
			least, most, sum = min(least, p), max(most, p), sum+float64(p)
		}
		u := float64(usual)
		expect.True(t, float64(least) >= 15*u/16 && float64(most) <= 17*u/16 && float64(most-least) > 0.12*u,
			"%d: from %d to %d", usual, least, most)
		expect.True(t, math.Abs(sum/tids/u-1) < 0.001, "%d: %g on average", usual, sum/tids)
	}
}

// The wall time of all samples equals that of all polls, except for time that waits for a sample. This holds
// for any share of time in which a thread is blocked. It does not depend on how often a poll finds the
// thread blocked, or on which of its stacks are read. Blocked stacks get the share of time that the thread
// was blocked.
func TestWallTime(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name    string
		stands  int // in ten moments
		every   int // of the polls of the blocked thread, every Nth gives a stack
		unarmed bool
		want    int64 // percentage for the stacks of the blocked thread
	}{
		{"always runs", 0, 1, false, 0},
		{"always stands", 10, 1, false, 100},
		{"half", 5, 1, false, 50},
		{"half, its stack is seldom seen standing", 5, 9, false, 50},
		{"stands mostly, its stack is seldom seen then", 9, 9, false, 90},
		{"its stack is never seen standing", 5, 1 << 30, false, 0},
		{"no timer", 5, 1, true, 100},
	} {
		k := Task{Armed: !c.unarmed}
		var standing, running, cpu, looks int64
		const polls = 10_000
		for i := range int64(polls) {
			if i%10*7%10 < int64(c.stands) {
				k.Unsampled += ms
				if looks++; looks%int64(c.every) == 0 {
					standing += k.Stood()
				}
			} else {
				k.Ran += ms
				if cpu += ms; cpu >= 4*ms && !c.unarmed { // its timer
					running += k.Worked(cpu)
					cpu = 0
				}
			}
		}
		all := standing + running
		if left := polls*ms - all; left < -maxUnsampled || left > 2*maxUnsampled {
			t.Errorf("%s: samples of %d ms", c.name, all/ms)
		}
		expect.Equal(t, (100*standing+all/2)/max(all, 1), c.want, "%s: percent that stood", c.name)
	}
}

// A sample of CPU time represents at least that much wall time. The blocked stacks get less if polls
// have found a running thread blocked.
func TestWallTimeOfMisjudgedPolls(t *testing.T) {
	k := Task{Armed: true, Unsampled: 30}
	got := k.Worked(10)
	expect.True(t, got == 10 && k.Unsampled == 30, "%d, unsampled %d", got, k.Unsampled)
	got = k.Stood()
	expect.True(t, got == 20 && k.Unsampled == 0 && k.Ran == 0, "%d, left %+v", got, k)
	k.Worked(10)
	k.Unsampled = 4
	expect.True(t, k.Stood() == 0 && k.Ran == -6, "left %d", k.Ran)
	k.Ran += 26
	expect.True(t, k.Worked(10) == 20, "left %d", k.Ran)
}

// With more threads than open files, the others are read all the same.
func TestPlaces(t *testing.T) {
	f := OpenFiles(os.Getpid())
	f.mostPlaces = 1
	a, b := &Task{TID: uint32(os.Getpid()), Stat: -1, Place: -1},
		&Task{TID: uint32(os.Getpid()), Stat: -1, Place: -1}
	for _, k := range []*Task{a, b} {
		w, _, _ := f.WhereIs(k)
		expect.True(t, w != Ended, "%+v has ended", k)
	}
	expect.True(t, a.Place >= 0 && b.Place < 0 && f.places == 1,
		"open: %d, %d; %d counted", a.Place, b.Place, f.places)
	f.Close(map[uint32]*Task{1: a, 2: b})
	expect.Equal(t, f.places, 0, "still counted")
}

// A thread's name may look like the rest of its stat.
func TestStateIn(t *testing.T) {
	for stat, want := range map[string]byte{"12 (sleep) S 1 2": 'S', "12 (a) R (b) D 1": 'D',
		"12 (x)": 0, "12 (x) ": 0, "": 0} {
		expect.Equal(t, State([]byte(stat)), want, "%q", stat)
	}
	b, _ := os.ReadFile("/proc/self/stat")
	s := State(b)
	expect.True(t, strings.ContainsRune("RSD", rune(s)), "%q", s)
}

// The weights of a random subset are right on average.
func TestDrawWeight(t *testing.T) {
	for _, c := range []struct{ all, drawn int }{{1, 1}, {128, 128}, {200, 128}, {255, 128}, {1000, 128}} {
		sum := uint64(0)
		for i := range c.drawn { // each value of the random number once
			sum += DrawWeight(c.all, c.drawn, func(int) int { return i })
		}
		expect.Equal(t, sum, uint64(c.all), "%d of %d threads stand for", c.drawn, c.all)
	}
}

// Time whose samples are missing is not distributed over other samples, unless the loss may be chance.
func TestMissed(t *testing.T) {
	const period = 10_000_000
	for name, c := range map[string]struct{ weighed, lost, located, want uint64 }{
		"all there":                      {100 * period, 0, 100 * period, 0},
		"more than there are":            {110 * period, 0, 100 * period, 0},
		"a few less":                     {91 * period, 0, 100 * period, 0},
		"few samples":                    {0, 0, 9 * period, 0},
		"none":                           {0, 0, 10 * period, 10 * period},
		"a part of many":                 {980 * period, 0, 1000 * period, 20 * period},
		"kernel time that was not shown": {100 * period, 60 * period, 60 * period, 20 * period},
	} {
		k := &Task{Weighed: c.weighed, KernelLost: c.lost}
		got := k.Missed(c.located, 10*period)
		expect.True(t, got == c.want, "%s: %d ms, want %d", name, got/1e6, c.want/1e6)
	}
}
