package target_test

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
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
		expect.Equal(t, estimate.Add(c.took), c.want, i)
	}
}
