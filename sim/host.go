package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

// Host is the process side of a profiler's sampler. It implements clr.Threads
// (Windows) and clr.Runtime (Linux), as the C shim does on real CLRs, with the same
// guard for dying threads.
type Host struct {
	w         *World
	A         *sched.Actor      // the sampler
	Truth     [][]machine.Frame // of the last capture of each slot, leaf first
	Counts    Counts
	Wrap      Wrap  // SampleAll wraps the product's seeder with it; may be nil
	Judge     Judge // SampleAll calls it instead of Merge and Check; may be nil
	Library   Library
	Interval  int         // pauses of SampleAll before each round
	AllLate   bool        // threads that have not answered at once answer after the suspension
	Ready     func() bool // SampleAll waits for it before each round; nil: it does not wait
	Primed    bool        // SampleAll has made its first calls
	slots     []*slot
	destroyed map[clr.ThreadID]bool
	claimed   clr.ThreadID // this thread's destruction waits
	inside    bool         // all destructions wait
	window    int          // threads suspended by the sampler
	watch     watch
	list      *List // nil: destroyed and claimed replace it
}

// Library walks and merges instead of the product's Go: the C library, which finds
// the process's stubs itself. If it is nil, the product's Go runs.
type Library interface {
	snapshot.Seeder
	Merge(c *clr.Capture, out []merge.Frame) merge.Result
}

// Judge gets a thread's capture, with its truth, after the suspension.
type Judge func(c *clr.Capture, truth []machine.Frame)

// Wrap returns a seeder around the product's. A test uses it to damage captures. The seeder may implement
// Learn, as snapshot.WalkSeeder does.
type Wrap func(s snapshot.Seeder) snapshot.Seeder

var (
	_ clr.Threads = (*Host)(nil)
	_ clr.Runtime = (*Host)(nil)
)

// Counts counts the calls of a host.
type Counts struct {
	Suspends, Resumes, Snapshots, Callbacks int
	Rescues                                 int // by the watchdog
	Loading                                 int // samples without a CLR walk: the thread was in the loader
	Results                                 map[clr.HRESULT]int

	Waited   int // threads whose end waited for a walk
	Shared   int // resumes of threads that another profiler had suspended too
	Owners   int // copies of threads that owned a lock which the CLR's walk takes
	Hijacked int // copies of threads with a hijacked return address
	Seeded   int // walks from a seed
	Again    int // of them, those of threads that the CLR had just called unmanaged
	Late     int // copies of threads that got no processor during the suspension
}

// slot holds the capture of one thread. Its storage is allocated before any
// suspension.
type slot struct {
	stack    []byte
	frames   []clr.SnapshotFrame
	answered bool
	status   clr.CaptureStatus
	state    machine.State
	addr     uint64
	n        int
	truth    []machine.Frame
	looked   bool        // truth is of the current suspension
	last     clr.HRESULT // of DoStackSnapshot
	asked    *Thread
}

// slotCount bounds the threads of one round, frameCount the callbacks of a walk.
const slotCount, frameCount = 16, 512

func newHost(w *World) *Host {
	h := &Host{w: w, destroyed: map[clr.ThreadID]bool{}, Counts: Counts{Results: map[clr.HRESULT]int{}}}
	w.CLR.Callbacks.ThreadDestroyed = h.threadDestroyed
	return h
}

// Sampler starts the profiler's sampler, a thread that never runs managed code.
func (h *Host) Sampler(body func(a *sched.Actor)) *sched.Actor {
	h.A = h.w.S.Go("sampler", func(a *sched.Actor) {
		h.A = a
		body(a)
	})
	return h.A
}

// threadDestroyed is the profiler's callback. It blocks until the walk of the
// dying thread has ended.
func (h *Host) threadDestroyed(a *sched.Actor, t *vm.Thread) {
	if h.list != nil {
		h.list.destroyed(a, t, h.A)
		h.destroyed[t.ID] = true
		return
	}
	h.destroyed[t.ID] = true
	if h.claimed == t.ID || h.inside {
		h.Counts.Waited++
	}
	a.WaitUntil("the walk of it to end", func() bool { return h.claimed != t.ID && !h.inside }, h.A)
}

func (h *Host) slot(i int) *slot {
	for len(h.slots) <= i {
		h.slots = append(h.slots, h.w.store.slot(len(h.slots), h.w.stack()))
		h.Truth = append(h.Truth, nil)
	}
	return h.slots[i]
}

func (h *Host) thread(id clr.ThreadID) *Thread {
	for _, t := range h.w.threads {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Known lists the threads between their ThreadCreated and ThreadDestroyed
// callbacks.
func (h *Host) Known() (out []clr.Thread) {
	for _, t := range h.w.threads {
		if t.Hijack != nil && !h.destroyed[t.ID] {
			out = append(out, h.id(t))
			h.A.Observe(uint64(t.ID))
		}
	}
	return out
}

func (h *Host) id(t *Thread) clr.Thread {
	low, high := t.M.Bounds()
	return clr.Thread{ID: t.ID, TID: t.TID, StackLow: low, StackHigh: high}
}

// Claim implements clr.Threads.
func (h *Host) Claim(t clr.Thread) bool {
	if h.list != nil {
		return h.list.claim(h.A, t)
	}
	h.A.Yield("claims a thread")
	if h.destroyed[t.ID] {
		return false
	}
	h.claimed = t.ID
	return true
}

// Release implements clr.Threads.
func (h *Host) Release(clr.Thread) {
	h.claimed = 0
	if h.list != nil {
		h.list.claimed = 0
	}
	h.A.Yield("releases the thread")
}

// Prime implements clr.Threads.
func (h *Host) Prime(t clr.Thread) (callbacks int, hr clr.HRESULT) {
	h.watch.begin(h.thread(t.ID))
	defer func() { h.watch.end(h.A); h.watch.rescued = false }()
	hr = h.w.CLR.DoStackSnapshot(h.A,
		vm.Call{Thread: t.ID, Flags: vm.RegisterContext, Receive: func(*vm.Callback) clr.HRESULT {
			callbacks++
			return clr.S_OK
		}})
	return callbacks, hr
}

// Suspend implements clr.Threads.
func (h *Host) Suspend(i int, t clr.Thread) clr.SuspendStatus {
	s := h.slot(i)
	s.looked, s.last = false, clr.S_OK
	if _, err := h.A.SuspendThread(h.thread(t.ID).A); err != nil {
		return clr.SuspendGone
	}
	h.window++
	h.Counts.Suspends++
	return clr.Suspended
}

// Context implements clr.Threads.
func (h *Host) Context(i int, c *clr.Capture) bool {
	t := h.thread(c.Thread.ID)
	if err := h.A.Stop(t.A); err != nil {
		return false
	}
	s := h.slot(i)
	h.copy(s, t)
	if !s.looked {
		// A second capture in one suspension has the same stack.
		s.looked, s.truth = true, t.M.Truth(s.truth[:0])
		h.Truth[i] = s.truth
	}
	h.fill(s, c, t)
	return true
}

// Resume implements clr.Threads.
func (h *Host) Resume(i int, t clr.Thread) {
	h.window--
	h.lost(h.slot(i))
	h.Counts.Resumes++
	if h.watch.rescued {
		h.watch.rescued = false
		return // the watchdog has resumed it
	}
	if h.thread(t.ID).A.Suspends() > 1 {
		h.Counts.Shared++
	}
	h.A.ResumeThread(h.thread(t.ID).A)
}

// lost faults if a method was on top and the CLR's last result says that none is.
// The CLR then looked at the thread after a collection had redirected it, and the
// sampler dropped the stack that it had captured.
func (h *Host) lost(s *slot) {
	if !s.looked || s.last != clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX || h.Wrap != nil {
		return
	}
	if kind, _ := h.w.CLR.Codes.At(s.truth[0].State.PC); kind == vm.Method {
		h.A.Fault("a lost stack: %s was on top, and is called unmanaged", s.truth[0].Func.Name)
	}
}

// copy copies t's registers and stack.
func (h *Host) copy(s *slot, t *Thread) {
	if c := h.w.CLR; c.PerThread.Owner() == t.A || c.Unwinder.Owner() == t.A {
		h.Counts.Owners++
	}
	if t.IsHijacked() {
		h.Counts.Hijacked++
	}
	h.A.Reads(t.A)
	s.state = t.M.State()
	addr, live := t.M.Stack()
	s.addr, s.n = addr, copy(s.stack, live)
}

func (h *Host) fill(s *slot, c *clr.Capture, t *Thread) {
	c.Thread.StackLow, c.Thread.StackHigh = t.M.Bounds()
	c.Regs = s.state.Registers(h.w.Arch)
	c.Stack = memory.Run{Addr: s.addr, Data: s.stack[:s.n]}
}

// DoStackSnapshot implements clr.Threads and clr.Runtime.
func (h *Host) DoStackSnapshot(i int, c *clr.Capture) {
	s := h.slot(i)
	s.frames = s.frames[:0]
	call := vm.Call{Thread: c.Thread.ID, Flags: vm.RegisterContext,
		Receive: func(cb *vm.Callback) clr.HRESULT {
			return h.record(s, c, cb)
		}}
	if c.Seeded {
		h.Counts.Seeded++
		if s.last == clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX {
			h.Counts.Again++
		}
		seed := h.seed(c)
		call.Seed = &seed
	}
	h.watch.begin(h.thread(c.Thread.ID))
	c.Result = h.w.CLR.DoStackSnapshot(h.A, call)
	c.Broken = h.watch.end(h.A)
	c.Frames, s.last = s.frames, c.Result
	h.Counts.Snapshots++
	h.Counts.Results[c.Result]++
}

// seed returns the CONTEXT that the CLR receives.
func (h *Host) seed(c *clr.Capture) machine.State {
	return machine.FromRegisters(&c.Seed)
}

// record is the snapshot callback. Like the C shim's, it writes flat words.
func (h *Host) record(s *slot, c *clr.Capture, cb *vm.Callback) clr.HRESULT {
	h.Counts.Callbacks++
	if len(s.frames) == cap(s.frames) {
		c.Full = true
		return clr.S_FALSE
	}
	f := clr.SnapshotFrame{Function: cb.Function, IP: cb.IP}
	layout := context.Win32AMD64
	if h.w.Arch == image.ARM64 {
		layout = context.Win32ARM64
	}
	r, err := context.Read(layout, cb.Context)
	if err != nil {
		h.A.Fault("a callback's context: %v", err)
	}
	f.Store(&r, h.w.Variant.Windows())
	s.frames = append(s.frames, f)
	return clr.S_OK
}

// FunctionFromIP implements clr.Threads and clr.Runtime.
func (h *Host) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return h.w.CLR.Codes.FunctionFromIP(ip)
}

// Now implements clr.Threads and clr.Runtime. A step takes a microsecond.
func (h *Host) Now() int64 { return int64(h.w.S.Steps()) * 1000 }

// Pause implements clr.Threads and clr.Runtime. It lets other threads run.
func (h *Host) Pause(int64) {
	if h.window != 0 {
		h.A.Fault("the sampler pauses while %d threads are suspended", h.window)
	}
	h.A.Yield("pauses")
}

// SuspendRuntime implements clr.Runtime.
func (h *Host) SuspendRuntime() clr.HRESULT {
	hr := h.w.CLR.SuspendRuntime(h.A)
	if !hr.Failed() {
		h.Counts.Suspends++
	}
	return hr
}

// ResumeRuntime implements clr.Runtime.
func (h *Host) ResumeRuntime() clr.HRESULT {
	h.Counts.Resumes++
	return h.w.CLR.ResumeRuntime(h.A)
}

// Enter implements clr.Runtime.
func (h *Host) Enter() { h.inside = true }

// Leave implements clr.Runtime.
func (h *Host) Leave() { h.inside = false }

// Alive implements clr.Runtime.
func (h *Host) Alive(t clr.Thread) bool { return !h.destroyed[t.ID] }

// Ask implements clr.Runtime. The signalled thread copies itself.
func (h *Host) Ask(i int, t clr.Thread) {
	s, target := h.slot(i), h.thread(t.ID)
	s.answered, s.asked, s.status = false, target, clr.Captured
	sent := h.A.Signal(target.A, func(*sched.Actor) {
		h.copy(s, target)
		s.truth = target.M.Truth(s.truth[:0])
		s.answered = true
	})
	if !sent {
		s.status = clr.CaptureGone
	}
}

// Await implements clr.Runtime.
func (h *Host) Await(i int, c *clr.Capture) {
	if s := h.slot(i); h.AllLate && !s.answered && s.status == clr.Captured {
		c.Status = clr.CaptureLate
		return
	}
	h.Late(i, c)
}

// Late implements clr.Runtime.
func (h *Host) Late(i int, c *clr.Capture) {
	s := h.slot(i)
	if s.status == clr.Captured {
		h.A.WaitUntil("its copy", func() bool { return s.answered || s.asked.A.Ended() }, s.asked.A)
	}
	if !s.answered {
		c.Status = clr.CaptureGone
		return
	}
	c.Status = clr.Captured
	if !h.inside {
		h.Counts.Late++
	}
	h.Truth[i] = s.truth
	h.fill(s, c, s.asked)
}

// NewThreads returns the product's sampler of single threads over this host.
func (h *Host) NewThreads(s snapshot.Seeder) *snapshot.ThreadSampler {
	return snapshot.NewThreads(h, s)
}
