package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/unwind"
)

// The suspension changes what it looks at: a thread that was running managed
// code now waits, inside the runtime, for the suspension to end. Those frames
// are on the stack, but the program did not put them there. Result.Probe counts
// them, so that a profile can leave them out.
//
// They are recognised without names. Two things are certain: a thread stopped by the
// runtime's signal waits in the signal's handler, since a signal frame stands right
// above an interrupted managed instruction; and where every thread is woken by the end of
// the suspension, threads wait for that. From such stacks the merger learns where the
// runtime waits (two return addresses of the same module), and knows the same wait when a
// thread came to it by itself: through a replaced return address, on its way back from
// native code, or in the runtime's own threads.

// wait is where the runtime waits: the two innermost of its return addresses.
type wait struct{ inner, outer uint64 }

// maxWaits bounds what is remembered; a runtime has one or two such places.
const maxWaits = 8

// How sure it is that a wait is for the end of a suspension: less than enough is a count
// of stacks that were woken by it. One alone may have been woken by somebody else at that
// moment; one that was not shows that others wait at that place too, as in the entry of
// any lock that the suspension may hold.
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
	next int // to be forgotten
}

// find is where a wait is remembered, or may be; -1: there is no room.
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

// observe notes what the end of a suspension did to a thread that waits at x.
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
	for top < len(frames) && (frames[top].Kind == unwind.KindNative || frames[top].Kind == unwind.KindSignal) {
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
	if managed && last.Kind == unwind.KindSignal && frames[top].Exact && frames[top].Kind == unwind.KindManaged {
		m.waits.learn(x)
		return top
	}
	m.waits.observe(x, wake)
	switch {
	case !m.waits.has(x):
		return 0
	case !managed: // a thread of the runtime's own: at its root is no return hook
	case m.hooks != nil && m.hooks.InReturnHook(last.Address()):
		return top
	case top == at+3 && last.Kind == unwind.KindNative && last.Module == frames[at].Module:
		return top // the helper that polls for a suspension: what it waits for is the sampler, too
	}
	return at + 2
}

// runtimeWait finds the two frames below the C library's: the first pair of one
// module that is not the innermost frame's. -1 if there is none.
func runtimeWait(block []Frame) int {
	for i := 1; i+1 < len(block); i++ {
		if block[i].Module == block[0].Module {
			continue
		}
		if block[i].Module >= 0 && block[i].Module == block[i+1].Module && block[i].Kind == unwind.KindNative && block[i+1].Kind == unwind.KindNative {
			return i
		}
		return -1
	}
	return -1
}
