package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/unwind"
)

// A suspension changes the stacks it is made for: a thread that was running managed code now waits, inside
// the runtime, for the end of the suspension. Those frames are on the stack, but the program did not put them
// there. Result.Probe counts them, so that a profile can leave them out.
// They are recognized without names. Two facts are certain. A thread stopped by the runtime's signal waits in
// the signal's handler: a signal frame is right above an interrupted managed instruction. And a thread that
// the end of the suspension wakes was waiting for it. From such stacks the merger learns where the runtime
// waits (two return addresses in the same module). It then recognizes the same wait in threads that went
// there without a signal: through a replaced return address, on return from native code, or in the runtime's
// own threads.

// wait is where the runtime waits: the two innermost of its return addresses.
type wait struct{ inner, outer uint64 }

// maxWaits limits the remembered waits; a runtime has one or two.
const maxWaits = 8

// How certain it is that a wait is for the end of a suspension. Values below enough count the stacks that the
// end of a suspension woke: a single one may have been woken by something else at that moment. One stack that
// was not woken proves that other threads wait at that place too, for example for a lock that the suspension
// may own.
const (
	refuted = -1
	enough  = 3
	certain = enough + 1
)

type waits struct {
	known [maxWaits]struct {
		wait
		sure int // 0: free
	}
	next int // the next to replace
}

// find is the index of a wait, or of a place for it; -1: no room.
func (w *waits) find(x wait) int {
	free := -1
	for i := range w.known {
		switch k := &w.known[i]; {
		case k.sure != 0 && k.wait == x:
			return i
		case k.sure == 0 && free < 0:
			free = i
		}
	}
	for n := 0; free < 0 && n < maxWaits; n++ {
		if w.next = (w.next + 1) % maxWaits; w.known[w.next].sure < certain {
			free = w.next
		}
	}
	if free >= 0 {
		w.known[free].wait, w.known[free].sure = x, 0
	}
	return free
}

func (w *waits) learn(x wait) {
	if i := w.find(x); i >= 0 {
		w.known[i].sure = certain
	}
}

func (w *waits) has(x wait) bool {
	for i := range w.known {
		if k := &w.known[i]; k.sure >= enough && k.wait == x {
			return true
		}
	}
	return false
}

// observe records what the end of a suspension did to a thread that waits at x.
func (w *waits) observe(x wait, what clr.Wake) {
	if what == clr.WakeUnknown {
		return
	}
	i := w.find(x)
	if i < 0 {
		return
	}
	switch k := &w.known[i]; {
	case k.sure == certain || k.sure == refuted:
	case what == clr.WakeNot:
		k.sure = refuted
	default:
		k.sure = min(k.sure+1, enough)
	}
}

// probe counts the leading frames of a merged stack that are the suspension's.
func (m *Merger) probe(frames []Frame, wake clr.Wake) int {
	top := 0 // the block of native frames on top ends here
	for top < len(frames) &&
		(frames[top].Kind == unwind.KindNative || frames[top].Kind == unwind.KindSignal) {
		top++
	}
	managed := top < len(frames) && frames[top].Kind != unwind.KindGap
	if top < 3 || top < len(frames) && !managed {
		return 0
	}
	at := runtimeWait(frames[:top])
	if at < 0 {
		return 0
	}
	x := wait{frames[at].IP, frames[at+1].IP}
	last := &frames[top-1]
	if managed && last.Kind == unwind.KindSignal && frames[top].Exact &&
		frames[top].Kind == unwind.KindManaged {
		m.waits.learn(x)
		return top
	}
	m.waits.observe(x, wake)
	switch {
	case !m.waits.has(x):
		return 0
	case !managed: // a thread of the runtime's own: there is no return hook at its root
	case m.hooks != nil && m.hooks.InReturnHook(last.Address()):
		return top
	case top == at+3 && last.Kind == unwind.KindNative && last.Module == frames[at].Module:
		return top // the helper that polls for a suspension: it, too, waits for the sampler
	}
	return at + 2
}

// runtimeWait finds the two frames below the C library's: the first pair in one module, other than the
// innermost frame's, or -1.
func runtimeWait(block []Frame) int {
	for i := 1; i+1 < len(block); i++ {
		if block[i].Module == block[0].Module {
			continue
		}
		if block[i].Module >= 0 && block[i].Module == block[i+1].Module &&
			block[i].Kind == unwind.KindNative && block[i+1].Kind == unwind.KindNative {
			return i
		}
		return -1
	}
	return -1
}
