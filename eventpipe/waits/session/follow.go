package session

import (
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// A wait is printed when it ends if all its frames have names, and after grace at the latest:
// a separate session delivers the names of methods that were just compiled. It does not
// deliver precompiled methods. If names are still missing after nameLimit, the list of methods is
// requested again from time to time.
const (
	nameLimit = 150 * time.Millisecond
	grace     = 400 * time.Millisecond
	tick      = 50 * time.Millisecond
	relist    = time.Second
	maxQueue  = 1 << 16
)

// follower reports waits when they end.
type follower struct {
	a     *waits.Analysis
	tell  func(*waits.Wait, []waits.Frame)
	queue chan pending
	done  chan struct{}

	relist func() // requests the list of methods
	listed time.Time
}

type pending struct {
	w     waits.Wait
	stack []uint64
	came  time.Time
}

func newFollower(a *waits.Analysis, tell func(*waits.Wait, []waits.Frame)) *follower {
	f := &follower{a: a, tell: tell, queue: make(chan pending, maxQueue), done: make(chan struct{})}
	go f.serve()
	return f
}

// add is called by the goroutine that reads the trace.
func (f *follower) add(w *waits.Wait) {
	if f.tell != nil && f.a.Match(w) {
		f.queue <- pending{*w, f.a.Stack(w.Stack), time.Now()}
	}
}

func (f *follower) close() {
	close(f.queue)
	<-f.done
}

func (f *follower) serve() {
	defer close(f.done)
	for p := range f.queue {
		for !f.ready(&p) {
			time.Sleep(tick)
		}
		f.tell(&p.w, f.frames(&p))
	}
}

func (f *follower) ready(p *pending) bool {
	if time.Since(p.came) > grace || f.named(p) {
		return true
	}
	if time.Since(p.came) > nameLimit && time.Since(f.listed) > relist && f.relist != nil {
		f.relist()
		f.listed = time.Now()
	}
	return false
}

func (f *follower) named(p *pending) bool {
	return p.w.Stack <= 0 || !slices.ContainsFunc(f.frames(p), func(fr waits.Frame) bool { return !fr.Named })
}

func (f *follower) frames(p *pending) []waits.Frame {
	if p.w.Stack <= 0 {
		return f.a.Frames(p.w.Stack, p.w.Start)
	}
	out := make([]waits.Frame, 0, len(p.stack))
	for _, addr := range p.stack {
		out = append(out, f.a.Names.Frame(addr, p.w.Start))
	}
	return out
}
