package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
)

// Advice is what to do with a sample.
type Advice uint8

const (
	AdviceComplete   Advice = iota // the CLR reported its frames: merge
	AdviceNativeOnly               // the thread has no managed frames: use the unmanaged ones alone
	AdviceRetry                    // temporary failure: resume, wait, retry; the capture may be shown
	AdvicePartial                  // the CLR's frames end early: merge with a gap
	AdviceRefused                  // permanent failure: stop sampling and report the reason
	AdviceGone                     // the thread has ended
	AdviceDenied                   // the system refuses to suspend this thread
	AdviceNotPrimed                // the sampler has not been primed
	AdviceLost                     // the thread resumed while it was walked: the capture is invalid
	AdviceStale                    // modules changed since the table was built: rebuild it and try again
)

var adviceNames = [...]string{"complete", "native-only", "retry", "partial", "refused", "gone", "denied",
	"not-primed", "lost", "stale"}

func (a Advice) String() string {
	if int(a) < len(adviceNames) {
		return adviceNames[a]
	}
	return "advice?"
}

// Decide turns the result of DoStackSnapshot for a suspended thread into an advice. v is the
// verdict on its seed. Package sim/vm has the table of the CLR's conditions for each HRESULT.
func Decide(v seed.Verdict, hr clr.HRESULT) Advice {
	switch hr {
	case clr.S_OK:
		return AdviceComplete
	case clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, clr.CORPROF_E_ASYNCHRONOUS_UNSAFE:
		// The target owns a lock that the walk needs, or a collection has started.
		return AdviceRetry
	case clr.E_FAIL, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX:
		// The CLR found no managed frame. If the thread has none, the result is correct.
		// Otherwise the thread waits for a collection after a hijack, or unwinds an
		// exception, and a later try succeeds.
		if v == seed.NoManaged {
			return AdviceNativeOnly
		}
		return AdviceRetry
	case clr.CORPROF_E_STACKSNAPSHOT_ABORTED, clr.E_UNEXPECTED:
		// The buffer was full, or the CLR caught a fault in its walk.
		return AdvicePartial
	}
	return AdviceRefused
}
