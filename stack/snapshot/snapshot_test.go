package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// script is a Runtime with scripted results that records its calls.
type script struct {
	suspend   []clr.HRESULT // results of SuspendRuntime; the last one repeats
	dead      map[clr.ThreadID]bool
	silent    map[clr.ThreadID]bool
	late      map[clr.ThreadID]bool
	gone      map[clr.ThreadID]bool
	result    clr.HRESULT
	clock     int64
	log       []string
	quiet     bool
	suspended int
	inside    bool
	bad       []string
}

func (s *script) note(format string, args ...any) {
	if !s.quiet {
		s.log = append(s.log, fmt.Sprintf(format, args...))
	}
}

// window fails the test if call was made outside the suspended window.
func (s *script) window(call string) {
	if s.suspended != 1 || !s.inside {
		s.bad = append(s.bad, call+" outside the window")
	}
}

// slot fails the test if slot i is not the thread's. The threads of a test are 1, 2, and so on.
func (s *script) slot(i int, t clr.Thread) {
	if i+1 != int(t.ID) {
		s.bad = append(s.bad, fmt.Sprintf("slot %d for thread %d", i, t.ID))
	}
}

func (s *script) SuspendRuntime() clr.HRESULT {
	hr := s.suspend[0]
	if len(s.suspend) > 1 {
		s.suspend = s.suspend[1:]
	}
	if !hr.Failed() {
		s.suspended++
	}
	s.note("suspend %v", hr)
	return hr
}

func (s *script) ResumeRuntime() clr.HRESULT {
	if s.inside {
		s.bad = append(s.bad, "resume before leave")
	}
	s.suspended--
	s.clock += 3
	s.note("resume")
	return clr.S_OK
}

func (s *script) Enter()                  { s.inside = true }
func (s *script) Leave()                  { s.inside = false }
func (s *script) Alive(t clr.Thread) bool { s.window("alive"); return !s.dead[t.ID] }
func (s *script) Ask(i int, t clr.Thread) { s.window("ask"); s.slot(i, t); s.note("ask %d", t.ID) }

func (s *script) Await(i int, c *clr.Capture) {
	s.window("await")
	s.slot(i, c.Thread)
	s.note("await %d", c.Thread.ID)
	switch {
	case s.gone[c.Thread.ID]:
		c.Status = clr.CaptureGone
	case s.silent[c.Thread.ID]:
		c.Status = clr.CaptureNoAnswer
	case s.late[c.Thread.ID]:
		c.Status = clr.CaptureLate
	default:
		c.Status = clr.Captured
	}
}

func (s *script) Late(i int, c *clr.Capture) {
	if s.suspended != 0 {
		s.bad = append(s.bad, "waits for a late copy while suspended")
	}
	s.slot(i, c.Thread)
	s.note("late %d", c.Thread.ID)
	c.Status = clr.Captured
}

func (s *script) DoStackSnapshot(i int, c *clr.Capture) {
	s.window("snapshot")
	s.slot(i, c.Thread)
	s.note("snapshot %d", c.Thread.ID)
	c.Result = s.result
}

func (s *script) FunctionFromIP(uint64) (clr.FunctionID, clr.HRESULT) { return 0, clr.E_FAIL }
func (s *script) Now() int64                                          { s.clock += 10; return s.clock }
func (s *script) Pause(n int64) {
	if s.suspended != 0 {
		s.bad = append(s.bad, "a pause while suspended")
	}
	if n > maxPause {
		s.bad = append(s.bad, "a pause without bound")
	}
	s.note("pause %d", n)
}

func threads(ids ...int) (out []clr.Thread) {
	for _, id := range ids {
		out = append(out, clr.Thread{ID: clr.ThreadID(id), TID: uint64(id)})
	}
	return out
}

func set(ids ...clr.ThreadID) map[clr.ThreadID]bool {
	m := map[clr.ThreadID]bool{}
	for _, id := range ids {
		m[id] = true
	}
	return m
}

func TestRound(t *testing.T) {
	busy := clr.CORPROF_E_SUSPENSION_IN_PROGRESS
	for _, c := range []struct {
		name     string
		rt       script
		threads  []clr.Thread
		want     string
		captures int
		result   clr.HRESULT
		status   []clr.CaptureStatus
	}{
		{"two threads", script{suspend: []clr.HRESULT{0}}, threads(1, 2),
			"suspend S_OK, ask 1, ask 2, await 1, await 2, snapshot 1, snapshot 2, resume", 2, 0,
			[]clr.CaptureStatus{clr.Captured, clr.Captured}},
		{"no threads", script{suspend: []clr.HRESULT{0}}, nil, "suspend S_OK, resume", 0, 0, nil},
		{"busy twice", script{suspend: []clr.HRESULT{busy, busy, 0}}, threads(1),
			"suspend CORPROF_E_SUSPENSION_IN_PROGRESS, pause 50000, suspend CORPROF_E_SUSPENSION_IN_PROGRESS, pause 100000, suspend S_OK, ask 1, await 1, snapshot 1, resume",
			1, 0, []clr.CaptureStatus{clr.Captured}},
		{"refused", script{suspend: []clr.HRESULT{clr.E_NOTIMPL}}, threads(1),
			"suspend E_NOTIMPL", 0, clr.E_NOTIMPL, nil},
		{"destroyed before the window", script{suspend: []clr.HRESULT{0}, dead: set(1)}, threads(1, 2),
			"suspend S_OK, ask 2, await 2, snapshot 2, resume", 2, 0,
			[]clr.CaptureStatus{clr.CaptureGone, clr.Captured}},
		{"ended when asked", script{suspend: []clr.HRESULT{0}, gone: set(1)}, threads(1, 2),
			"suspend S_OK, ask 1, ask 2, await 1, await 2, snapshot 2, resume", 2, 0,
			[]clr.CaptureStatus{clr.CaptureGone, clr.Captured}},
		{"one does not answer: its managed frames are still had",
			script{suspend: []clr.HRESULT{0}, silent: set(1)}, threads(1),
			"suspend S_OK, ask 1, await 1, snapshot 1, resume", 1, 0,
			[]clr.CaptureStatus{clr.CaptureNoAnswer}},
		{"one got no processor: its copy comes after the suspension",
			script{suspend: []clr.HRESULT{0}, late: set(1)}, threads(1, 2),
			"suspend S_OK, ask 1, ask 2, await 1, await 2, snapshot 1, snapshot 2, resume, late 1", 2, 0,
			[]clr.CaptureStatus{clr.Captured, clr.Captured}},
		{"more threads than slots", script{suspend: []clr.HRESULT{0}}, threads(1, 2, 3, 4, 5),
			"suspend S_OK, ask 1, ask 2, ask 3, ask 4, await 1, await 2, await 3, await 4, snapshot 1, snapshot 2, snapshot 3, snapshot 4, resume", 4, 0,
			[]clr.CaptureStatus{clr.Captured, clr.Captured, clr.Captured, clr.Captured}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := c.rt
			s := New(&rt, 4)
			s.Captures[0].Seeded = true // left by an earlier round
			o := s.Round(c.threads)
			expect.True(t, o.Captures == 0 || !s.Captures[0].Seeded, "Seeded of an earlier round stays")
			got := strings.Join(rt.log, ", ")
			expect.True(t, got == c.want, "calls: %s\nwant:  %s", got, c.want)
			expect.True(t, o.Captures == c.captures && o.Result == c.result && len(rt.bad) == 0 &&
				rt.suspended == 0, "outcome %+v, suspended %d, bad %v", o, rt.suspended, rt.bad)
			var status []clr.CaptureStatus
			for i := range o.Captures {
				status = append(status, s.Captures[i].Status)
			}
			expect.Slices(t, status, c.status, "status")
		})
	}
}

// A runtime that always refuses temporarily ends the round after a bounded number of retries.
func TestRetriesAreBounded(t *testing.T) {
	rt := script{suspend: []clr.HRESULT{clr.CORPROF_E_SUSPENSION_IN_PROGRESS}}
	o := New(&rt, 1).Round(threads(1))
	expect.True(t, o.Retries == MaxRetries && o.Captures == 0 && o.Result.Failed() && len(rt.bad) == 0,
		"%+v, %v", o, rt.bad)
}

func TestOutcomeTimes(t *testing.T) {
	rt := script{suspend: []clr.HRESULT{0}}
	o := New(&rt, 1).Round(threads(1))
	expect.True(t, o.SuspendNS == 10 && o.SuspendedNS == 13,
		"%+v: the clock ticks 10 a look, and 3 in a resume", o)
}

func TestWindowDoesNotAllocate(t *testing.T) {
	rt := script{suspend: []clr.HRESULT{0}, quiet: true}
	s, all := New(&rt, 4), threads(1, 2, 3, 4)
	expect.Equal(t, testing.AllocsPerRun(100, func() { s.Round(all) }), 0, "allocations")
}

// loads is a Seeder for a thread that is in the system's loader in its first calls.
type loads struct {
	verdict seed.Verdict
	looks   *int
}

func (l loads) Seed(c *clr.Capture) seed.Verdict {
	*l.looks--
	c.Loading = *l.looks >= 0
	return l.verdict
}

// breaks is windows whose watchdog resumes the thread at the first call of the CLR.
type breaks struct{ windows }

func (b *breaks) DoStackSnapshot(i int, c *clr.Capture) {
	b.windows.DoStackSnapshot(i, c)
	c.Broken = true
}

// The CLR is not called about a thread in the loader; it is called once the thread has left it.
func TestLoading(t *testing.T) {
	const look = "suspend, context, resume"
	for _, c := range []struct {
		name    string
		verdict seed.Verdict
		looks   int
		want    string
		advice  Advice
	}{
		{"not in it", seed.Found, 0, "suspend, context, snapshot seeded=true, resume", AdviceComplete},
		{"once", seed.Found, 1, look + ", pause 1000000, suspend, context, snapshot seeded=true, resume",
			AdviceComplete},
		{"without managed frames its walk is its stack", seed.NoManaged, 1, look, AdviceNativeOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := windows{results: results(0), frames: 1}
			left := c.looks
			s := NewThreads(&rt, loads{c.verdict, &left})
			s.Prime(threads(1))
			rt.log = nil
			o := s.Sample(threads(1)[0])
			got := strings.Join(rt.log, ", ")
			expect.True(t, got == c.want && o.Advice == c.advice && len(rt.bad) == 0,
				"calls: %s, advice %v, bad %v\nwant:  %s, %v", got, o.Advice, rt.bad, c.want, c.advice)
		})
	}
}

// A capture of a thread that ran on is dropped, and the CLR is not called about it again in the same window.
func TestBroken(t *testing.T) {
	rt := breaks{windows{results: results(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX), frames: 1}}
	s := NewThreads(&rt, says(seed.NotNeeded))
	s.Prime(threads(1))
	rt.log = nil
	o := s.Sample(threads(1)[0])
	got := strings.Join(rt.log, ", ")
	expect.True(t, got == "suspend, context, snapshot seeded=false, resume" && o.Advice == AdviceLost &&
		o.Tries == 1, "calls %s, advice %v, %d tries", got, o.Advice, o.Tries)
}

// changing is windows with a loader that counts changes.
type changing struct {
	windows
	loads []uint64 // one per Context; the last repeats
}

func (w *changing) Context(slot int, c *clr.Capture) bool {
	c.Loads = w.loads[0]
	if len(w.loads) > 1 {
		w.loads = w.loads[1:]
	}
	return w.windows.Context(slot, c)
}

// TestStale: a thread that was suspended while the modules differ from the table is not walked, by seedwalk
// or the CLR, and is resumed at once.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		name   string
		loads  []uint64
		want   string
		advice Advice
		tries  int
	}{
		{"the same modules", []uint64{7},
			"suspend, context, snapshot seeded=true, resume", AdviceComplete, 1},
		{"not counted", []uint64{0}, "suspend, context, snapshot seeded=true, resume", AdviceComplete, 1},
		{"one more", []uint64{8}, "suspend, context, resume", AdviceStale, 1},
		{"one fewer: the table is newer", []uint64{6}, "suspend, context, resume", AdviceStale, 1},
		{"between two tries", []uint64{7, 9},
			"suspend, context, snapshot seeded=true, resume, pause 1000000, suspend, context, resume",
			AdviceStale, 2},
	} {
		rt := &changing{windows{frames: 1, results: results(0)}, c.loads}
		if c.tries == 2 {
			rt.results = results(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)
		}
		s := NewThreads(rt, says(seed.Found))
		s.Prime(threads(1))
		s.Loads, rt.log = 7, nil
		o := s.Sample(threads(1)[0])
		if got := strings.Join(rt.log, ", "); got != c.want || o.Advice != c.advice || o.Tries != c.tries {
			t.Errorf("%s: advice %v after %d tries, calls: %s", c.name, o.Advice, o.Tries, got)
		}
		expect.Equal(t, o.Each[o.Tries-1].Captured, c.advice == AdviceComplete,
			"%s: %+v", c.name, o.Each[o.Tries-1])
		expect.True(t, len(rt.bad) == 0 && rt.count == 0 && rt.claimed == 0,
			"%s: suspend count %d, claims %d, bad %v", c.name, rt.count, rt.claimed, rt.bad)
	}
}

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
		{"an unknown HRESULT", seed.Found, clr.HRESULT(0x80131399), AdviceRefused},
	} {
		expect.Equal(t, Decide(c.v, c.hr), c.want, "%s: %v with %v", c.name, c.hr, c.v)
	}
}
