package threads

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Stretches cover a twentieth of the time, or less if they have many events. Their period fits.
func TestGap(t *testing.T) {
	for _, c := range []struct {
		events int
		mean   time.Duration
	}{
		{2, 1900 * time.Millisecond}, {300, 1900 * time.Millisecond},
		{500, 2890 * time.Millisecond},  // 3 s without longestGap
		{1024, 4940 * time.Millisecond}, // 6.1 s without longestGap
		{4096, 8220 * time.Millisecond},
	} {
		draws, sum := rand.New(rand.NewPCG(1, 2)), time.Duration(0)
		for range 100000 {
			g := Gap(c.events, draws.ExpFloat64())
			sum += g
			must.True(t, g <= longestGap, "a gap of %v", g)
		}
		if mean := sum / 100000; (mean - c.mean).Abs() > c.mean/30 {
			t.Errorf("%d events: a mean gap of %v, want %v", c.events, mean, c.mean)
		}
		// In the mean, a stretch has the samples of the stretch and the gap.
		const period = int64(50 * time.Millisecond)
		parts := float64(period) / float64(StretchPeriod(period, c.events))
		if want := float64(StretchLength+sum/100000) / float64(StretchLength); math.Abs(parts/want-1) > 0.02 {
			t.Errorf("%d events: the period is shorter by %.1f, want %.1f", c.events, parts, want)
		}
	}
}

// A process gets stretches above 1,000 switches a second and loses them below 500, or if it creates many
// threads.
func TestStretchesWanted(t *testing.T) {
	var s Stretches
	now, switches := time.Now(), uint64(0)
	for i, c := range []struct {
		rate    uint64
		created int
		want    bool
	}{
		{9000, 50, false}, // before the first measurement
		{900, 0, false}, {1100, 8, true}, {600, 0, true}, {400, 0, false}, {600, 0, false},
		{9000, 9, false}, {9000, 0, true}, {9000, 9, false},
	} {
		now, switches, s.Created = now.Add(countEvery), switches+c.rate*4, c.created
		s.On = s.Wanted(now, switches)
		expect.True(t, s.On == c.want, "%d: %v, want %v", i, s.On, c.want)
		expect.True(t, s.Wanted(now.Add(countEvery/2), switches) == s.On,
			"%d: another answer before it is due", i)
	}
}
