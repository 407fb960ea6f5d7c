package inflow

import (
	"github.com/seedwalk/seedwalk/eventpipe/pool"
	"github.com/seedwalk/seedwalk/report/wire"
)

// noStack is the gap code of events of the thread pool.
const noStack = wire.GapCut - 1

// WatchPool records how long work waits in a process's thread pool, and when the pool starves.
func (p *Process) WatchPool(pid int, note func(string)) {
	err := pool.Watch(pid, p.Gone, func(e pool.Event) {
		m := &wire.Event{TID: e.Thread, TimeUnixNano: e.End.UnixNano(), Kind: wire.EventQueue,
			Nanos: uint64(e.Waited), Gap: noStack}
		if e.Starved {
			m.Kind = wire.EventStarved
		}
		p.Mu.Lock()
		defer p.Mu.Unlock()
		if !p.sealed && !p.over(m) {
			p.Receive(m)
		}
	})
	if err != nil {
		note("the thread pool's queue is not recorded: " + err.Error())
	}
}
