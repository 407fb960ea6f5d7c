package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Stack is one merged stack of a round of Once. The agent owns Frames: they are valid only
// while the function that receives the stack runs.
type Stack struct {
	Thread  clr.Thread
	Name    string // of the thread
	Merged  merge.Result
	HRESULT clr.HRESULT // of DoStackSnapshot
	Frames  []merge.Frame
	Table   *module.Table // Frame.Module is an index of it
	Unix    int64         // nanoseconds since 1970
	CPU     uint64        // CPU time since the thread's last sample, nanoseconds
}

// Round is the result of a round of Once. The counts are totals over all rounds.
type Round struct {
	Known       int    // live threads
	Refused     string // reason to stop sampling, "" to continue
	Suspensions uint64 // of the runtime or of a thread
	Retries     uint64 // suspensions that had to be repeated
	Gone        uint64 // threads that ended before they could be sampled
	Denied      uint64 // threads that the system refuses to suspend
}

// Once takes one round now, for callers with their own timer. It samples the given thread,
// or all threads in turn if thread is 0. It passes each stack to use on the calling thread,
// while nothing is suspended. Do not mix Once and Run on one agent.
func (a *Agent) Once(thread clr.ThreadID, use func(*Stack)) Round {
	a.use, a.only = use, thread
	a.openRaw()
	a.events()
	a.tables.refresh(a, false)
	if a.choose() {
		a.pin()
		a.refused = a.take.round(a, a.chosen)
		a.host.Unpin()
	}
	a.use, a.only = nil, 0
	a.stream.Out.Reset() // Once has no receiver of the stream
	a.stream.Raw.Flush()
	return a.sofar()
}

func (a *Agent) sofar() Round {
	r := Round{Known: len(a.threads), Refused: a.refused, Suspensions: a.stats.suspended,
		Retries: a.stats.retries, Gone: a.stats.gone}
	if s, ok := a.take.(*single); ok {
		r.Denied = s.denied
	}
	return r
}

// Name returns a method's display name and the file of its module, "" if the runtime does
// not know them. The function that Once calls may call it.
func (a *Agent) Name(f clr.FunctionID) (name, module string) {
	m, module, ok := a.names.name(f)
	if !ok {
		return "", ""
	}
	name = m.Readable()
	a.stream.Raw.Method(f, name)
	return name, module
}

// Source returns the position in the IL and in the source for the Addr of a frame. The same
// rules as for Name hold.
func (a *Agent) Source(f clr.FunctionID, addr uint64) (s Source, ok bool) {
	return a.host.Source(f, addr, true)
}

// Forgotten grows whenever FunctionIDs may have been reused for other methods.
func (a *Agent) Forgotten() uint64 { return a.names.forgotten }

// wanted keeps only the requested thread, if there is one.
func (a *Agent) wanted() {
	if a.only == 0 {
		return
	}
	for i := range a.threads {
		if a.threads[i].ID == a.only {
			a.threads = append(a.threads[:0], a.threads[i])
			return
		}
	}
	a.threads = a.threads[:0]
}

// hand passes a merged capture to the function that Once received. A copy gets no CPU time, because the
// program chose its moment.
func (a *Agent) hand(c *clr.Capture, res *merge.Result) {
	now, k := time.Now().UnixNano(), a.clocks[c.Thread.TID]
	if c == a.copied {
		k.cpuD = 0
	} else {
		k.at = now
		a.clocks[c.Thread.TID] = k
	}
	a.use(&Stack{Thread: c.Thread, Name: k.name, Merged: *res, HRESULT: c.Result,
		Frames: a.frames[:res.N], Table: a.tables.table,
		Unix: now, CPU: k.cpuD})
	a.stream.Raw.Sample(c, res, a.frames[:res.N])
}
