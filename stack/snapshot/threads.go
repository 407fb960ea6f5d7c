package snapshot

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
)

// Seeder computes the seed of a suspended thread: from c's registers and stack
// it fills c.Seed. It runs in the suspended window: it allocates nothing, takes
// no lock and ends in bounded time.
type Seeder interface {
	Seed(c *clr.Capture) seed.Verdict
}

// ThreadOutcome is the result of sampling one thread.
type ThreadOutcome struct {
	Suspend clr.SuspendStatus // of the last try, as are Verdict and Advice
	Verdict seed.Verdict
	Advice  Advice
	Tries   int           // suspensions made
	Each    [MaxTries]Try // the first Tries of them
}

// Try is one suspension of a thread.
type Try struct {
	Captured bool         // false: no context, or the modules changed; ignore Verdict and Result then
	Verdict  seed.Verdict // of our own walk
	Result   clr.HRESULT  // of DoStackSnapshot

	SuspendedNS int64 // from before Suspend to after Resume
	ContextNS   int64 // share of it until the context was read
	SeedNS      int64 // share of it for our own walk
	SnapshotNS  int64 // share of it for DoStackSnapshot
}

// ThreadSampler suspends and samples one thread at a time, as Windows permits.
type ThreadSampler struct {
	rt      clr.Threads
	seeder  Seeder
	primed  bool
	Capture clr.Capture // of the last sample, valid until the next one
	again   clr.Capture

	// Loads is the loader's change count from before the seeder's table was built. A capture
	// with another count is not walked, because a new module may have the address of an
	// unloaded one.
	Loads uint64

	// Between, if it is set, is called with each capture after its thread has been resumed.
	Between func(c *clr.Capture)
}

// NewThreads returns a sampler of single threads.
func NewThreads(rt clr.Threads, s Seeder) *ThreadSampler {
	return &ThreadSampler{rt: rt, seeder: s}
}

// Prime lets the CLR initialize its state for the sampler while nothing is suspended: it
// walks threads until one of them reports a frame. Sample refuses until Prime has
// succeeded. Source: the remarks on DoStackSnapshot in Microsoft's
// profiling API reference.
func (s *ThreadSampler) Prime(threads []clr.Thread) bool {
	for i := range threads {
		if s.primed {
			break
		}
		if !s.rt.Claim(threads[i]) {
			continue
		}
		n, _ := s.rt.Prime(threads[i])
		s.rt.Release(threads[i])
		s.primed = n > 0
	}
	return s.primed
}

// MaxTries bounds the suspensions of one Sample.
const MaxTries = 12

// Sample captures the stack of t into s.Capture. It retries if the CLR reports a temporary
// failure. Each try starts from scratch. Between tries, nothing is suspended.
func (s *ThreadSampler) Sample(t clr.Thread) ThreadOutcome {
	o := ThreadOutcome{Suspend: clr.SuspendDenied, Advice: AdviceNotPrimed}
	pause := int64(firstThreadPause)
	for s.primed {
		lives := s.once(t, &o)
		if s.Between != nil && s.Capture.Status == clr.Captured {
			s.Between(&s.Capture)
		}
		if !lives || o.Advice != AdviceRetry || o.Tries == MaxTries {
			break
		}
		s.rt.Pause(pause)
		pause = min(2*pause, mostThreadPause)
	}
	return o
}

// firstThreadPause is the wait before the second try, in nanoseconds. It doubles up to mostThreadPause. A
// collection, the usual cause of a retry, takes about a millisecond. A thread of .NET Core 2.2.2 whose faults
// become exceptions is often at a throw helper: 5 to 11 % of its stacks were refused after six tries, and
// 0.6 % after twelve.
const (
	firstThreadPause = 1_000_000
	mostThreadPause  = 8_000_000
)

// once makes one try. It returns false if the thread has ended.
func (s *ThreadSampler) once(t clr.Thread, o *ThreadOutcome) bool {
	c := &s.Capture
	*c = clr.Capture{Thread: t, Status: clr.CaptureGone, Result: clr.E_FAIL}
	o.Suspend, o.Verdict, o.Advice = clr.SuspendGone, seed.Truncated, AdviceGone
	if !s.rt.Claim(t) {
		return false
	}
	start := s.rt.Now()
	if o.Suspend = s.rt.Suspend(0, t); o.Suspend == clr.Suspended {
		try := &o.Each[o.Tries]
		o.Tries++
		s.suspended(c, try, start)
		s.rt.Resume(0, t)
		try.SuspendedNS = s.rt.Now() - start
		o.Verdict = try.Verdict
	}
	s.rt.Release(t)
	switch {
	case c.Broken:
		o.Advice = AdviceLost
	case o.Suspend == clr.SuspendDenied:
		o.Advice = AdviceDenied
	case c.Status == clr.Captured && s.stale(c):
		o.Advice = AdviceStale
	case c.Status == clr.Captured:
		o.Advice = Decide(o.Verdict, c.Result)
	}
	return o.Advice != AdviceGone
}

// ┌──────────────────────────────────────────────────────────────────────────┐
// │ THE SUSPENDED WINDOW. In here: no allocation, no lock, no map, no channel, │
// │ no log, no name look-up, no call but the CLR's and the seeder's. Every     │
// │ path returns to the caller, which resumes the thread.                      │
// └──────────────────────────────────────────────────────────────────────────┘
func (s *ThreadSampler) suspended(c *clr.Capture, o *Try, start int64) {
	o.Verdict = seed.Truncated
	if !s.rt.Context(0, c) {
		return
	}
	c.Status = clr.Captured
	if s.stale(c) {
		return
	}
	o.Captured = true
	context := s.rt.Now()
	o.Verdict = s.seeder.Seed(c)
	// A doubtful seed is not passed on: without a seed, the CLR uses its own state, and
	// refuses if that is not enough. If managed code is on top, no seed is passed either:
	// the CLR then reads the thread's context itself, which is at least as good as ours.
	c.Seeded = o.Verdict == seed.Found
	walked := s.rt.Now()
	if c.Loading {
		// The CLR's walk may ask the system for unwind data, and then waits for a lock that
		// this thread owns. Report a temporary failure; a later try succeeds.
		o.ContextNS, o.SeedNS, o.Result = context-start, walked-context, c.Result
		return
	}
	s.rt.DoStackSnapshot(0, c)
	if !c.Broken && o.Verdict == seed.NotNeeded && c.Result == clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX && s.redirected(c) {
		c.Seeded = true
		s.rt.DoStackSnapshot(0, c)
	}
	o.Result = c.Result
	o.ContextNS, o.SeedNS, o.SnapshotNS = context-start, walked-context, s.rt.Now()-walked
}

// stale reports whether modules were loaded or unloaded between the build of the table and
// the capture.
func (s *ThreadSampler) stale(c *clr.Capture) bool { return c.Loads != 0 && c.Loads != s.Loads }

// redirected reports whether the CLR redirected the suspended thread from managed code to a
// stub. A starting collection does this. The stub has not run, so the capture is correct,
// but the CLR itself finds no managed code on the thread.
func (s *ThreadSampler) redirected(c *clr.Capture) bool {
	now := &s.again
	*now = clr.Capture{Thread: c.Thread}
	if !s.rt.Context(0, now) {
		return false
	}
	stubbed := s.seeder.Seed(now) == seed.StubOnTop
	now.Regs.SetIP(c.Seed.IP())
	if !now.Regs.Equal(&c.Seed) {
		// Something resumed or moved the thread. The second capture replaced the copy of the
		// stack, so it no longer belongs to the registers.
		c.Stack = memory.Run{}
		return false
	}
	now.Redirected = true
	return stubbed && s.seeder.Seed(now) != seed.Unsafe
}
