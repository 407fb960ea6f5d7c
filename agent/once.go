package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/module"
)

// Stack is one merged stack of a round that was asked for. Frames is the agent's:
// it is valid while the function that is given the stack runs.
type Stack struct {
	Thread  clr.Thread
	Name    string // of the thread
	Merged  merge.Result
	HRESULT clr.HRESULT // of DoStackSnapshot
	Frames  []merge.Frame
	Table   *module.Table // Frame.Module is an index of it
	Unix    int64         // nanoseconds since 1970
	CPU     uint64        // nanoseconds of processor since the thread's last sample
}

// Round says how a round that was asked for went. The counts grow from round to
// round.
type Round struct {
	Known       int    // threads that live
	Refused     string // why there is no use in going on, "" if there is
	Suspensions uint64 // of the runtime or of a thread
	Retries     uint64 // suspensions that had to be made again
	Gone        uint64 // threads that ended before they could be sampled
	Denied      uint64 // threads that the system suspends for nobody
}

// Once takes one round now, for those who own their timer: of the thread that is
// named, or of all in turn if that is 0. Each stack is handed to use on the calling
// thread, while nothing is suspended. Once and Run are not for the same agent.
func (a *Agent) Once(thread clr.ThreadID, use func(*Stack)) Round {
	a.use, a.only = use, thread
	a.openRaw()
	a.events()
	a.tables.refresh(a, false)
	if a.choose() {
		a.host.Pin()
		a.refused = a.take.round(a, a.chosen)
		a.host.Unpin()
	}
	a.use, a.only = nil, 0
	a.stream.Out.Reset() // it is nobody's
	a.stream.Raw.Flush()
	return a.sofar()
}

func (a *Agent) sofar() Round {
	r := Round{Known: len(a.threads), Refused: a.refused, Suspensions: a.stats.suspended, Retries: a.stats.retries, Gone: a.stats.gone}
	if s, ok := a.take.(*single); ok {
		r.Denied = s.denied
	}
	return r
}

// Name is a method's name for people and its module's file; "" if the runtime does
// not tell. It may be asked by the function that Once calls.
func (a *Agent) Name(f clr.FunctionID) (name, module string) {
	m, module, ok := a.names.name(f)
	if !ok {
		return "", ""
	}
	name = m.Readable()
	a.stream.Raw.Method(f, name)
	return name, module
}

// Source is where in the IL and in the source the code at an address comes from: a frame's
// Addr. It may be asked when Name may.
func (a *Agent) Source(f clr.FunctionID, addr uint64) (s Source, ok bool) {
	return a.host.Source(f, addr, true)
}

// Forgotten grows whenever FunctionIDs may have become those of other methods.
func (a *Agent) Forgotten() uint64 { return a.names.forgotten }

// wanted leaves the one thread that was asked for, if one was.
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

// hand gives a merged capture to whom it was taken for. A copy is of a moment that the
// program chose: no processor time since the last sample is its own.
func (a *Agent) hand(c *clr.Capture, res *merge.Result) {
	now, k := time.Now().UnixNano(), a.clocks[c.Thread.TID]
	if c == a.copied {
		k.cpuD = 0
	} else {
		k.at = now
		a.clocks[c.Thread.TID] = k
	}
	a.use(&Stack{Thread: c.Thread, Name: k.name, Merged: *res, HRESULT: c.Result, Frames: a.frames[:res.N], Table: a.tables.table,
		Unix: now, CPU: k.cpuD})
	a.stream.Raw.Sample(c, res, a.frames[:res.N])
}
