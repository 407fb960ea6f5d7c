package snapshot

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Each result of DoStackSnapshot gives the right advice: a temporary failure must not end a recording, and
// a permanent one must not be retried.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name string
		v    seed.Verdict
		hr   clr.HRESULT
		want Advice
	}{
		{"all frames", seed.Found, clr.S_OK, AdviceComplete},
		{"nothing to report", seed.NoManaged, clr.S_OK, AdviceComplete},
		{"the target owns what the walk needs", seed.Found, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, AdviceRetry},
		{"the same, no managed frame", seed.NoManaged, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, AdviceRetry},
		{"the lock of the code tables", seed.Found, clr.CORPROF_E_ASYNCHRONOUS_UNSAFE, AdviceRetry},
		{"the same, no seed needed", seed.NotNeeded, clr.CORPROF_E_ASYNCHRONOUS_UNSAFE, AdviceRetry},
		{"waits for a collection", seed.Found, clr.E_FAIL, AdviceRetry},
		{"no managed frame", seed.NoManaged, clr.E_FAIL, AdviceNativeOnly},
		{"an exception unwinds", seed.Found, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, AdviceRetry},
		{"no managed frame, seedless", seed.NoManaged,
			clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, AdviceNativeOnly},
		{"the recorder was full", seed.Found, clr.CORPROF_E_STACKSNAPSHOT_ABORTED, AdvicePartial},
		{"a fault in the walk", seed.Found, clr.E_UNEXPECTED, AdvicePartial},
		{"the event mask", seed.Found, clr.CORPROF_E_INCONSISTENT_WITH_FLAGS, AdviceRefused},
		{"detaching", seed.Found, clr.CORPROF_E_PROFILER_DETACHING, AdviceRefused},
		{"not on this system", seed.Found, clr.E_NOTIMPL, AdviceRefused},
		{"a bad argument", seed.Found, clr.E_INVALIDARG, AdviceRefused},
		{"an answer nobody knows", seed.Found, clr.HRESULT(0x80131399), AdviceRefused},
	} {
		expect.Equal(t, Decide(c.v, c.hr), c.want, "%s: %v with %v", c.name, c.hr, c.v)
	}
}
