package nettrace

import (
	"time"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// systemTime reads a SYSTEMTIME: eight 16-bit numbers; the third is the day of the week. It
// returns the zero time for an invalid date.
func systemTime(b *buf.Reader) time.Time {
	var v [8]int
	for i := range v {
		v[i] = int(b.U16())
	}
	if v[0] < 1601 || v[0] > 9999 || v[1] < 1 || v[1] > 12 || v[3] < 1 || v[3] > 31 || v[4] > 23 ||
		v[5] > 59 || v[6] > 60 || v[7] > 999 {
		return time.Time{}
	}
	return time.Date(v[0], time.Month(v[1]), v[3], v[4], v[5], v[6], v[7]*int(time.Millisecond), time.UTC)
}
