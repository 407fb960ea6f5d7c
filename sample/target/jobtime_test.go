package target_test

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/target"
)

// One run that a busy machine interrupts raises the estimate at most to twice the last one.
func TestJobTime(t *testing.T) {
	var estimate target.JobTime
	for i, c := range []struct{ took, want time.Duration }{
		{time.Microsecond, time.Microsecond}, {time.Second, 2 * time.Millisecond},
		{time.Microsecond, time.Microsecond},
		{time.Second, 2 * time.Millisecond}, {time.Second, 4 * time.Millisecond},
		{5 * time.Millisecond, 5 * time.Millisecond},
	} {
		if got := estimate.Add(c.took); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}
