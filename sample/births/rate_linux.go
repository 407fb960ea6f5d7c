package births

import "time"

// rate decides whether the births of a process's threads wake the tool. Each record that wakes the tool
// costs the process an interrupt. If there are many, the tool reads them at intervals instead.
type rate struct {
	many bool // the tool reads births at intervals
	born int  // threads since measured

	measured time.Time // when the births were counted last
	refused  time.Time // when the tool could not change last
}

const (
	// countEvery is the time between two counts while births are few.
	countEvery = 4 * time.Second
	// manyBirths is the number of births a second above which the tool reads them at intervals. Below, the
	// intervals would cost the tool more than the births cost the process.
	manyBirths = 20
	// manyFor is how long the tool then reads at intervals at least: each change opens new events.
	manyFor = time.Minute
)

// changed counts the births if that is due, and reports whether many has changed.
func (r *rate) changed(now time.Time) bool {
	passed, due := now.Sub(r.measured), countEvery
	if r.many {
		due = manyFor
	}
	if passed < due || now.Sub(r.refused) < manyFor {
		return false
	}
	many := float64(r.born) > manyBirths*passed.Seconds() && !r.measured.IsZero()
	changed := many != r.many
	r.many, r.born, r.measured = many, 0, now
	return changed
}

// takeBack takes back the last change, which the tool could not make. It may be tried again after manyFor.
func (r *rate) takeBack(now time.Time) { r.many, r.refused = !r.many, now }
