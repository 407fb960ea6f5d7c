package top

import (
	"os"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The CPU time of a view is that of the process's clock, though the recording has not read it meanwhile.
func TestTopReadsClock(t *testing.T) {
	l := &liveView{pid: os.Getpid(), every: time.Millisecond, load: &counters{}, json: true}
	p := workload(1e9, 5e6)
	l.take(p)
	from := l.last.cpu
	for now := from; now < from+2e7; { // burns 20 ms
		now, _ = procstat.CPUTime(l.pid)
	}
	l.take(p)
	expect.True(t, l.shown != nil && l.shown.CPU*l.shown.Seconds >= 0.02, "%+v", l.shown)
}
