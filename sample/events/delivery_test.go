package events

import (
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The frames that deliver an event are learned from two kinds of event and removed, with the one calling
// function per kind. A stack that was delivered in another way is unchanged.
func TestDelivery(t *testing.T) {
	wait := []uint64{1, 2, 3, 30, 31, 32}
	stop := []uint64{1, 2, 3, 40, 31, 32}
	for _, c := range []struct {
		name   string
		learn  [][]uint64
		of     []uint64
		events []uint32 // nil: a different one for each stack
		cut    int
		ok     bool
	}{
		{"one kind", [][]uint64{wait}, wait, nil, 0, false},
		{"one kind twice", [][]uint64{wait, {1, 9}}, wait, []uint32{301, 301}, 0, false},
		{"two kinds", [][]uint64{wait, stop}, wait, nil, 4, true},
		{"a third of the same way", [][]uint64{wait, stop, {1, 2, 3, 50}}, stop, nil, 4, true},
		{"a third that shares less", [][]uint64{wait, stop, {1, 2, 50}}, stop, nil, 3, true},
		{"no more than there is", [][]uint64{wait, stop}, []uint64{1, 2, 3}, nil, 3, true},
		{"another way", [][]uint64{wait, stop}, []uint64{1, 7, 3, 4}, nil, 0, false},
		{"shorter than the run", [][]uint64{wait, stop}, []uint64{1, 2}, nil, 0, false},
		{"nothing in common", [][]uint64{wait, {8, 9}}, wait, nil, 0, false},
		{"no frames", [][]uint64{wait, {}}, wait, nil, 0, false},
	} {
		var d delivery
		for i, ips := range c.learn {
			id := uint32(i)
			if c.events != nil {
				id = c.events[i]
			}
			d.learn(id, ips)
		}
		if cut, ok := d.cut(c.of); cut != c.cut || ok != c.ok {
			t.Errorf("%s: %d frames, %v; want %d, %v", c.name, cut, ok, c.cut, c.ok)
		}
	}
	var d delivery
	mine := slices.Clone(wait)
	d.learn(1, mine)
	clear(mine)
	d.learn(2, stop)
	expect.True(t, d.n == 3, "%d frames in common after the caller has used its slice again", d.n)
}

// lateAlarm is an alarm whose goroutine notices its end when it is let go.
type lateAlarm struct{ closed, letGo chan struct{} }

func (a lateAlarm) Set(time.Duration) {}
func (a lateAlarm) Close()            { close(a.closed) }
func (a lateAlarm) Wait() bool {
	<-a.closed
	<-a.letGo
	return false
}

// Stop returns when nothing uses the file any more, however late that is: the engine unmaps it then.
func TestHeartbeatStop(t *testing.T) {
	a := lateAlarm{make(chan struct{}), make(chan struct{})}
	h := &Heartbeat{alarm: a, ended: make(chan struct{})}
	go h.run()
	stopped := make(chan struct{})
	go func() { h.Stop(); close(stopped) }()
	<-a.closed
	select {
	case <-stopped:
		t.Fatal("the file would be unmapped, or stay mapped for ever, while it is in use")
	case <-time.After(1200 * time.Millisecond): // longer than it once waited
	}
	close(a.letGo)
	<-stopped
}
