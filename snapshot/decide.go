package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/seed"
)

// Advice says what to do with a sample.
type Advice uint8

const (
	AdviceComplete   Advice = iota // the CLR's frames are there: merge
	AdviceNativeOnly               // the thread runs no managed code: its unmanaged frames are its stack
	AdviceRetry                    // not now: resume, wait, try again; what was captured may be shown with a gap
	AdvicePartial                  // the CLR's frames end early: merge, with a gap
	AdviceRefused                  // it will be refused for ever: stop sampling and say why
	AdviceGone                     // the thread has ended
	AdviceDenied                   // this thread may not be suspended
	AdviceNotPrimed                // the sampler has not been primed
	AdviceLost                     // it was held too long and ran on while it was walked: what was captured is worth nothing
	AdviceStale                    // modules came or went since the table was made: make it anew and try again
)

var adviceNames = [...]string{"complete", "native-only", "retry", "partial", "refused", "gone", "denied", "not-primed", "lost", "stale"}

func (a Advice) String() string {
	if int(a) < len(adviceNames) {
		return adviceNames[a]
	}
	return "advice?"
}

// Decide judges DoStackSnapshot's answer for a suspended thread whose seed was
// given verdict v. The table of the CLR's conditions behind each HRESULT stands
// in package sim/vm.
func Decide(v seed.Verdict, hr clr.HRESULT) Advice {
	switch hr {
	case clr.S_OK:
		return AdviceComplete
	case clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, clr.CORPROF_E_ASYNCHRONOUS_UNSAFE:
		// The target owns what the walk needs, or a collection has begun.
		return AdviceRetry
	case clr.E_FAIL, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX:
		// Nothing to walk from. Without any managed frame that is the truth; with
		// one, the target waits for a collection after a hijack, or unwinds an
		// exception, and a moment later there is an answer.
		if v == seed.NoManaged {
			return AdviceNativeOnly
		}
		return AdviceRetry
	case clr.CORPROF_E_STACKSNAPSHOT_ABORTED, clr.E_UNEXPECTED:
		// The recorder was full; or the CLR caught a fault in its walk.
		return AdvicePartial
	}
	return AdviceRefused
}
