package threads

import "time"

// BirthRate decides whether the births of a process's threads wake the tool. Each record that wakes the tool
// costs the process an interrupt. If there are many, the tool reads them at intervals instead.
type BirthRate struct {
	Many bool // the tool reads births at intervals
	Born int  // threads since measured

	measured time.Time // when the births were counted last
	refused  time.Time // when the tool could not change last
}

const (
	// manyBirths is the number of births a second above which the tool reads them at intervals. Below, the
	// intervals would cost the tool more than the births cost the process.
	manyBirths = 20
	// manyFor is how long the tool then reads at intervals at least: each change opens new events.
	manyFor = time.Minute
)

// Changed counts the births if that is due, and reports whether Many has changed.
func (r *BirthRate) Changed(now time.Time) bool {
	passed, due := now.Sub(r.measured), countEvery
	if r.Many {
		due = manyFor
	}
	if passed < due || now.Sub(r.refused) < manyFor {
		return false
	}
	many := float64(r.Born) > manyBirths*passed.Seconds() && !r.measured.IsZero()
	changed := many != r.Many
	r.Many, r.Born, r.measured = many, 0, now
	return changed
}

// Refused takes back the last change, which the tool could not make. It may be tried again after manyFor.
func (r *BirthRate) Refused(now time.Time) { r.Many, r.refused = !r.Many, now }
