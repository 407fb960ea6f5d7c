package births

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Births are many above 20 a second, for a minute at least. The first interval does not count.
func TestRate(t *testing.T) {
	var r rate
	now := time.Unix(1, 0)
	for i, c := range []struct {
		born          int
		passed        time.Duration
		changed, many bool
	}{
		{900, countEvery, false, false}, {80, countEvery, false, false},
		{81, countEvery / 2, false, false}, {0, countEvery / 2, true, true}, {0, countEvery, false, true},
		{1201, manyFor - countEvery, false, true},
		{1200, manyFor, true, false}, {79, countEvery, false, false}, {81, countEvery, true, true},
	} {
		now = now.Add(c.passed)
		r.born += c.born
		if changed := r.changed(now); changed != c.changed || r.many != c.many {
			t.Errorf("%d: changed %v, many %v", i, changed, r.many)
		}
	}
	r.takeBack(now)
	expect.True(t, !r.many, "a change that was refused")
	for _, passed := range []time.Duration{countEvery, manyFor - countEvery - 1} {
		now, r.born = now.Add(passed), r.born+10000
		expect.True(t, !r.changed(now), "tried again too soon")
	}
	expect.True(t, r.changed(now.Add(1)) && r.many, "not tried again")
}
