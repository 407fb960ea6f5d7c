package threads

import (
	"math"
	"time"
)

// Stretches decides when a process whose threads switch often has perf events. At each switch, the kernel
// stops and restarts all events of the thread, which takes 2 to 6 us. Such a process has events only for
// stretches of time, which begin at random moments. In a stretch, StretchPeriod shortens the period. So a
// sample represents as much processor time as without stretches.
//
// Known gap: a thread that lives between two stretches has no sample.
type Stretches struct {
	On      bool      // the process is sampled in stretches
	Open    bool      // one is in progress
	Refused time.Time // when there was no room for the copies of all threads
	Reopen  bool      // kernel time is not sampled at all, since there was no room for it either
	Next    time.Time // when the stretch ends or the next one begins
	Created int       // threads since measured

	measured time.Time // when the switches were counted last
	switches uint64    // then
}

const (
	StretchLength = 100 * time.Millisecond
	// stretchParts: stretches with few events cover one of this many parts of the time.
	stretchParts = 20
	// refusedFor is how long after Refused the process has no stretches. Others may free the lockable memory.
	refusedFor = time.Minute
	// longestGap bounds the time between two stretches.
	longestGap = 10 * time.Second
	// gapPerEvent is the least mean length of a gap, for each event of a stretch. The tool needs about 20 us
	// to open and close one.
	gapPerEvent = 6 * time.Millisecond
	// A process gets stretches above manySwitches per second, and its events back below fewSwitches.
	manySwitches = 1000
	fewSwitches  = 500
	countEvery   = 4 * time.Second
	// mostCreated is how many threads a process with stretches may create per countEvery.
	mostCreated = 8
)

// Ready reports whether the kernel may be asked for the copies of all threads.
func (s *Stretches) Ready(now time.Time) bool { return now.Sub(s.Refused) >= refusedFor }

// Wanted reports whether the process should be sampled in stretches. switches is how often its threads have
// got a processor.
func (s *Stretches) Wanted(now time.Time, switches uint64) bool {
	passed := now.Sub(s.measured)
	if passed < countEvery {
		return s.On
	}
	rate := float64(switches-s.switches) / passed.Seconds()
	many := rate > manySwitches || s.On && rate > fewSwitches
	many = many && s.Created <= mostCreated && !s.measured.IsZero()
	s.measured, s.switches, s.Created = now, switches, 0
	return many
}

// Gap returns the time between two stretches with a number of events. The draws have an exponential
// distribution with the mean 1, so no work of the program can stay in step with the stretches.
func Gap(events int, draw float64) time.Duration {
	return min(time.Duration(draw*float64(usualGap(events))), longestGap)
}

// usualGap is the mean that a gap would have if longestGap did not bound it.
func usualGap(events int) time.Duration {
	return max((stretchParts-1)*StretchLength, time.Duration(events)*gapPerEvent)
}

// StretchPeriod returns the period in a stretch with a number of events: period, multiplied by the part of
// the time that stretches cover.
func StretchPeriod(period int64, events int) int64 {
	usual := float64(usualGap(events))
	gap := usual * (1 - math.Exp(-float64(longestGap)/usual)) // the mean of Gap
	return int64(float64(period) * float64(StretchLength) / (float64(StretchLength) + gap))
}
