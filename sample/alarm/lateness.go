package alarm

import (
	"math/bits"
	"time"
)

// Lateness counts how late moments were. The zero value is ready for use.
type Lateness struct {
	late    [bits.UintSize + 1]uint // moments by the binary logarithm of their lateness in nanoseconds
	Moments uint
}

// Add adds a moment. It may have been early.
func (l *Lateness) Add(late time.Duration) {
	l.late[bits.Len64(uint64(max(0, late)))]++
	l.Moments++
}

// Fade halves all counts if there are more than most moments, so that old moments count less and less.
func (l *Lateness) Fade(most uint) {
	if l.Moments <= most {
		return
	}
	l.Moments = 0
	for i := range l.late {
		l.late[i] /= 2
		l.Moments += l.late[i]
	}
}

// Bound returns a bound for the lateness of a share of the moments, in nanoseconds: a power of two, or 0
// without moments.
func (l *Lateness) Bound(share float64) uint64 {
	seen := uint(0)
	for i, n := range l.late {
		if seen += n; n > 0 && float64(seen) >= share*float64(l.Moments) {
			return 1 << i
		}
	}
	return 0
}
