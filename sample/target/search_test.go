package target

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// A module with a runtime that is not ready is searched again: at first at once, and after an hour a second
// later. A refused module is not.
func TestSearch(t *testing.T) {
	begin := time.Unix(1000, 0)
	var s search
	expect.True(t, s.due(begin), "the first attempt")
	for _, c := range []struct{ at, pause time.Duration }{
		{0, 0}, {20 * time.Millisecond, time.Millisecond}, {4 * time.Second, 200 * time.Millisecond},
		{time.Hour, time.Second},
	} {
		now := begin.Add(c.at)
		expect.True(t, s.due(now), "the attempt after %v", c.at)
		s = s.failed(now)
		expect.Equal(t, s.next.Sub(now), c.pause, "after ", c.at)
		expect.True(t, c.pause == 0 || !s.due(now), "an attempt too early, after %v", c.at)
	}
	expect.True(t, !search{refused: true}.due(begin), "a refused module")
}
