// Package snapshot runs the protocol around DoStackSnapshot, in the two ways
// that platforms allow. Sampler (Linux): suspend the runtime, have the threads
// copy their context and stack, DoStackSnapshot, resume. ThreadSampler
// (Windows): suspend one thread, take its context, compute the seed,
// DoStackSnapshot, resume.
//
// Sources: David Broman, "Profiler stack walking: basics and beyond";
// dotnet/runtime docs/design/coreclr/botr/profilability.md and
// src/coreclr/vm/proftoeeinterfaceimpl.cpp.
//
// Glossary. A *try* is one suspension for a sample. The *window* lasts from the stop to
// the resume. *Priming* is a walk while nothing is suspended; the CLR initializes its
// own state in it. An *advice* is what to do with the sample, given a verdict and
// an HRESULT: use it, try again, drop it, or stop sampling (decide.go).
//
// Strategy. Everything that needs memory, locks or time happens before the
// suspended window (choosing threads) or after it (unwinding the copied
// stacks, merging, naming). The window contains only calls of the Runtime. They
// use storage that was allocated at the start.
//
// Sampler holds no thread while the CLR walks. On Linux, the CLR's walker uses
// its own libunwind, which takes a process-wide mutex. A thread that is stopped
// in the middle of an exception may own this mutex, and the walk then waits
// forever (.NET 9.0.5: within seconds). Threads need not be held: in a suspended
// runtime, a thread can run unmanaged code only, so its managed frames do not
// change after it made its copy. For the same reason a thread that got no processor
// in the window may make its copy after it (CaptureLate).
//
// Known gaps: runtimes before .NET Core 3.0 on Linux have no SuspendRuntime and cannot
// be sampled there; no walk from inside callbacks.
package snapshot

import "github.com/seedwalk/seedwalk/clr"

// MaxRetries bounds how often one round retries a suspension that the runtime refuses
// temporarily.
const MaxRetries = 40

// retryPause is the first wait between two retries, in nanoseconds. It doubles up to
// maxPause.
const (
	retryPause = 50_000
	maxPause   = 2_000_000
)

// Outcome is the result of a round.
type Outcome struct {
	Result      clr.HRESULT // of SuspendRuntime, the last try
	Retries     int         // suspensions tried again after a temporary refusal
	Captures    int         // captures filled, whether the thread answered or not
	SuspendedNS int64       // time from the suspension's success to the resume's return
	SuspendNS   int64       // time that SuspendRuntime itself took, last try
}

// Sampler owns the captures of a round.
type Sampler struct {
	rt       clr.Runtime
	Captures []clr.Capture
}

// New returns a sampler of up to slots threads a round.
func New(rt clr.Runtime, slots int) *Sampler {
	return &Sampler{rt: rt, Captures: make([]clr.Capture, slots)}
}

// Round samples up to len(s.Captures) threads. The captures [0, Captures) of
// the outcome are valid until the next round. Threads that ended
// in between are skipped (CaptureGone).
func (s *Sampler) Round(threads []clr.Thread) Outcome {
	if len(threads) > len(s.Captures) {
		threads = threads[:len(s.Captures)]
	}
	var o Outcome
	if !s.suspend(&o) {
		return o
	}
	start := s.rt.Now()
	s.window(threads)
	s.rt.ResumeRuntime()
	o.SuspendedNS = s.rt.Now() - start
	o.Captures = len(threads)
	for i := range threads {
		if c := &s.Captures[i]; c.Status == clr.CaptureLate {
			s.rt.Late(i, c)
		}
	}
	return o
}

// suspend retries until the runtime is suspended, refuses permanently, or no tries are left.
// It waits only while nothing is suspended.
func (s *Sampler) suspend(o *Outcome) bool {
	pause := int64(retryPause)
	for {
		begin := s.rt.Now()
		o.Result = s.rt.SuspendRuntime()
		o.SuspendNS = s.rt.Now() - begin
		if !o.Result.Failed() {
			return true
		}
		if !clr.SuspensionRetry(o.Result) || o.Retries == MaxRetries {
			return false
		}
		o.Retries++
		s.rt.Pause(pause)
		pause = min(2*pause, maxPause)
	}
}

// ┌──────────────────────────────────────────────────────────────────────────┐
// │ THE SUSPENDED WINDOW. In here: no allocation, no lock, no map, no channel, │
// │ no log, no name look-up, no call but the Runtime's. Every Ask is followed  │
// │ by its Await on every path, and a late answer by its Late after the resume.│
// └──────────────────────────────────────────────────────────────────────────┘
func (s *Sampler) window(threads []clr.Thread) {
	rt := s.rt
	rt.Enter()
	for i := range threads {
		c := &s.Captures[i]
		*c = clr.Capture{Thread: threads[i], Status: clr.CaptureGone, Result: clr.E_FAIL}
		if rt.Alive(threads[i]) {
			c.Status = clr.CaptureNone
			rt.Ask(i, threads[i])
		}
	}
	for i := range threads {
		if c := &s.Captures[i]; c.Status != clr.CaptureGone {
			rt.Await(i, c)
		}
	}
	for i := range threads {
		if c := &s.Captures[i]; c.Status != clr.CaptureGone {
			rt.DoStackSnapshot(i, c)
		}
	}
	rt.Leave()
}
