package merge

import "github.com/seedwalk/seedwalk/unwind"

// The suspension changes what it looks at: a thread that was running managed
// code now waits, inside the runtime, for the suspension to end. Those frames
// are on the stack, but the program did not put them there. Result.Probe counts
// them, so that a profile can leave them out.
//
// They are recognised without names. A thread stopped by the runtime's signal
// waits in the signal's handler: certain, since a signal frame stands right
// above an interrupted managed instruction. From such stacks the merger learns
// where the runtime waits (two return addresses of the same module), and
// knows the same wait when a thread came to it by itself, through a replaced
// return address or on its way back from native code.

// wait is where the runtime waits: the two innermost of its return addresses.
type wait struct{ inner, outer uint64 }

// maxWaits bounds what is learned; a runtime has one or two such places.
const maxWaits = 8

type waits struct {
	known [maxWaits]wait
	n     int
}

func (w *waits) learn(x wait) {
	if !w.has(x) && w.n < maxWaits {
		w.known[w.n] = x
		w.n++
	}
}

func (w *waits) has(x wait) bool {
	for _, k := range w.known[:w.n] {
		if k == x {
			return true
		}
	}
	return false
}

// probe counts the leading frames of a merged stack that are the suspension's.
func (m *Merger) probe(frames []Frame) int {
	top := 0 // the block of native frames on top ends here
	for top < len(frames) && (frames[top].Kind == unwind.KindNative || frames[top].Kind == unwind.KindSignal) {
		top++
	}
	if top < 3 || top == len(frames) || frames[top].Kind == unwind.KindGap {
		return 0
	}
	at := runtimeWait(frames[:top])
	if at < 0 {
		return 0
	}
	x := wait{frames[at].IP, frames[at+1].IP}
	switch last := &frames[top-1]; {
	case last.Kind == unwind.KindSignal && frames[top].Exact && frames[top].Kind == unwind.KindManaged:
		m.waits.learn(x)
		return top
	case !m.waits.has(x):
		return 0
	case m.landings != nil && m.landings.InLanding(last.Address()):
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
