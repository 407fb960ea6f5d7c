package outside

import (
	"github.com/seedwalk/seedwalk/stack/merge"
)

// lookAt leaves the stack of a thread that stands still in e.s.Frames.
func (e *Engine) lookAt(tid uint32) (merge.Gap, bool) {
	t := e.tasks[tid]
	if t == nil {
		t = &task{tid: tid, stat: -1, place: -1}
		defer e.kernel.shut(t)
	}
	at, sp, ip := e.whereIs(t)
	if at != blocked {
		return 0, false
	}
	c, ok := e.readStack(t, sp, ip)
	if !ok {
		return 0, false
	}
	gap, _, ok := e.walk(&c)
	return gap, ok
}

// resting is the last sample of a thread that has rested since.
func (e *Engine) resting(tid uint32) (held, bool) {
	if t := e.tasks[tid]; t != nil && t.rest {
		return t.stack, true
	}
	return held{}, false
}
