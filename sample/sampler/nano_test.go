package sampler

import (
	"testing"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// later returns what time.Now returns after d if the system's clock is set meanwhile, forward by a number of
// seconds. The first word of a time.Time with a monotonic reading has the seconds from bit 30 on.
func later(t *testing.T, now time.Time, d time.Duration, set int64) time.Time {
	t.Helper()
	at := now.Add(d)
	*(*uint64)(unsafe.Pointer(&at)) += uint64(set << 30)
	must.True(t, at.Sub(now) == d && at.UnixNano() == now.UnixNano()+int64(d)+set*1e9,
		"a time.Time has another layout: %v", at)
	return at
}

// The time of a recording passes as usual if the system's clock is set meanwhile. Otherwise no thread would
// be polled for as long as the clock was set back, and a clock set forward would count as waiting time.
func TestNanoOfSetClock(t *testing.T) {
	b := Base{began: time.Now()}
	for _, set := range []int64{0, -3600, 3600} {
		passed := b.Nano(later(t, b.began, time.Millisecond, set)) - b.began.UnixNano()
		expect.Equal(t, passed, 1e6, "the clock is set by %d s", set)
	}
}
