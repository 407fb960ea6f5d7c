package outside

import (
	"github.com/seedwalk/seedwalk/stack/merge"
)

// lookAt leaves the stack of a thread in e.s.Frames.
func (e *Engine) lookAt(tid uint32) (merge.Gap, bool) {
	t := e.threads[tid]
	if t == nil {
		return 0, false
	}
	return e.sample(t)
}

// walkLater is for samples that are held: none is on Windows, where a runtime that can be read
// needs no proof.
func (e *Engine) walkLater(*stackSample) {}

// resting is the last sample of a thread that has rested since.
func (e *Engine) resting(tid uint32) (held, bool) {
	if t := e.threads[tid]; t != nil && t.rest && t.spent() == t.cycles {
		return t.stack, true
	}
	return held{}, false
}
