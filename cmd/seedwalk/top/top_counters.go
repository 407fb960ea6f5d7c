package top

import (
	"maps"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// counters holds the latest values of the runtime's counters.
type counters struct {
	mu      sync.Mutex
	latest  map[string]float64
	session *diagnostics.Session
	done    chan struct{}
}

// maxCounters bounds the number of counters.
const maxCounters = 256

// watchCounters reads the counters of a process, if it has a diagnostics port. A process without
// one has no counters.
func watchCounters(pid int) *counters {
	c := &counters{latest: map[string]float64{}, done: make(chan struct{})}
	client, err := diagnostics.Running(pid)
	if err == nil {
		c.session, err = client.Collect(diagnostics.Config{BufferMB: 8, NoStacks: true,
			Providers: []diagnostics.Provider{{Name: clrevent.Counters, Level: 4,
				Arguments: "EventCounterIntervalSec=1"}}})
	}
	if err != nil {
		close(c.done)
		return c
	}
	go c.read()
	return c
}

func (c *counters) read() {
	defer close(c.done)
	r := nettrace.NewReader(c.session)
	for {
		kind, err := r.Next()
		if err != nil {
			return
		}
		if kind != nettrace.EventKind || r.Event().Meta.Name != clrevent.CounterEvent {
			continue
		}
		if v, ok := clrevent.DecodeCounter(r.Event().Payload); ok {
			c.mu.Lock()
			if len(c.latest) < maxCounters {
				c.latest[v.Name] = v.Value
			}
			c.mu.Unlock()
		}
	}
}

func (c *counters) values() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.latest)
}

// close ends the session. It does not wait for a process that does not answer.
func (c *counters) close() {
	if c.session == nil {
		return
	}
	go c.session.Stop()
	select {
	case <-c.done:
	case <-time.After(2 * time.Second):
	}
	c.session.Close()
}
