package threads

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Births are many above 20 a second, for a minute at least. The first interval does not count.
func TestBirthRate(t *testing.T) {
	var r BirthRate
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
		r.Born += c.born
		if changed := r.Changed(now); changed != c.changed || r.Many != c.many {
			t.Errorf("%d: changed %v, many %v", i, changed, r.Many)
		}
	}
	r.Refused(now)
	expect.True(t, !r.Many, "a change that was refused")
	for _, passed := range []time.Duration{countEvery, manyFor - countEvery - 1} {
		now, r.Born = now.Add(passed), r.Born+10000
		expect.True(t, !r.Changed(now), "tried again too soon")
	}
	expect.True(t, r.Changed(now.Add(1)) && r.Many, "not tried again")
}
