package alarm

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The lateness is a bound for a share of the moments.
func TestLateness(t *testing.T) {
	var l Lateness
	expect.Equal(t, l.Bound(0.9), 0, "no moment is late")
	add := func(n int, late time.Duration) {
		for range n {
			l.Add(late)
		}
	}
	add(90, 1000)
	add(10, 100_000)
	expect.Equal(t, l.Bound(0.9), 1<<10)
	add(9, 100_000)
	expect.Equal(t, l.Bound(0.9), 1<<17)
	expect.Equal(t, l.Bound(0.5), 1<<10)
	l.Fade(109)
	expect.Equal(t, l.Moments, 109, "few moments")
	l.Fade(108)
	expect.True(t, l.Moments == 54 && l.Bound(0.8) == 1<<10, "half of them: %+v", l)
	add(1000, -time.Millisecond)
	expect.Equal(t, l.Bound(0.9), 1, "most moments were early")
}
