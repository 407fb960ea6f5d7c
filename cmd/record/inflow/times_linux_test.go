package inflow

import (
	"bytes"
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A recording that joins gives the process's time the cause that the first recording gave it.
func TestCauseOfProcess(t *testing.T) {
	for _, c := range []struct {
		name   string
		causes []uint8
		part   bool // the part begins after the reports
		want   uint8
	}{
		{"not reported", nil, false, wire.CauseShort},
		{"short threads", []uint8{wire.CauseShort}, false, wire.CauseShort},
		{"random clock", []uint8{wire.CauseNone}, false, wire.CauseNone},
		{"the last one counts", []uint8{wire.CauseNone, wire.CauseTool}, false, wire.CauseTool},
		{"before the part", []uint8{wire.CauseNone}, true, wire.CauseNone},
	} {
		first := measure(os.Getpid())
		j := &joined{pid: os.Getpid(), times: newTimes(os.Getpid(), &first)}
		for _, cause := range c.causes {
			j.times.ended(&wire.Usage{TID: wire.ProcessTID, CPUNanos: 1, Cause: cause})
		}
		j.times.ended(&wire.Usage{TID: 1, Cause: wire.CauseBlocked}) // of a thread
		if c.part {
			j.beginTimes()
		}
		w := wire.NewWriter(nil)
		j.times.write(w, measure(os.Getpid()))
		r := wire.NewReader(bytes.NewReader(w.Bytes()))
		for {
			m, ok := must.Get(r.Next())(t).(*wire.Usage)
			must.True(t, ok, "%s: no message of the process", c.name)
			if m.TID == wire.ProcessTID {
				expect.Equal(t, m.Cause, c.want, "%s: cause", c.name)
				break
			}
		}
	}
}
