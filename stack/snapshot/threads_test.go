package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// windows is a clr.Threads with scripted results that records its calls and checks the rules of the window.
type windows struct {
	dead    bool
	status  clr.SuspendStatus
	lost    bool // the thread has no context
	results []clr.HRESULT
	frames  int // callbacks of a priming walk
	quiet   bool
	clock   int64
	log     []string
	bad     []string
	claimed int
	count   int
}

func (w *windows) note(format string, args ...any) {
	if !w.quiet {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

func (w *windows) must(ok bool, what string) {
	if !ok {
		w.bad = append(w.bad, what)
	}
}

func (w *windows) Claim(clr.Thread) bool {
	w.must(w.claimed == 0 && w.count == 0, "claim inside a claim")
	if !w.dead {
		w.claimed++
	}
	return !w.dead
}

func (w *windows) Release(clr.Thread) {
	w.must(w.claimed == 1 && w.count == 0, "release of a suspended or unclaimed thread")
	w.claimed--
}

func (w *windows) Prime(t clr.Thread) (int, clr.HRESULT) {
	w.must(w.claimed == 1 && w.count == 0, "prime of a suspended or unclaimed thread")
	w.note("prime %d", t.ID)
	if t.ID == 13 {
		return 0, clr.E_FAIL
	}
	return w.frames, clr.S_OK
}

func (w *windows) Suspend(int, clr.Thread) clr.SuspendStatus {
	w.must(w.claimed == 1, "suspend of an unclaimed thread")
	w.note("suspend")
	if w.status == clr.Suspended {
		w.count++
	}
	return w.status
}

func (w *windows) Context(_ int, c *clr.Capture) bool {
	w.must(w.count == 1, "context of a running thread")
	w.note("context")
	return !w.lost
}

func (w *windows) DoStackSnapshot(_ int, c *clr.Capture) {
	w.must(w.count == 1, "snapshot of a running thread")
	w.note("snapshot seeded=%v", c.Seeded)
	c.Result = w.results[0]
	if len(w.results) > 1 {
		w.results = w.results[1:]
	}
}

func (w *windows) Resume(int, clr.Thread) { w.count--; w.clock += 3; w.note("resume") }

func (w *windows) FunctionFromIP(uint64) (clr.FunctionID, clr.HRESULT) { return 0, clr.E_FAIL }
func (w *windows) Now() int64                                          { w.clock += 10; return w.clock }
func (w *windows) Pause(n int64) {
	w.must(w.count == 0 && w.claimed == 0, "a pause inside the window")
	w.note("pause %d", n)
}

// says is a Seeder with a fixed verdict.
type says seed.Verdict

func (v says) Seed(*clr.Capture) seed.Verdict { return seed.Verdict(v) }

func results(h ...clr.HRESULT) []clr.HRESULT { return h }

func TestSample(t *testing.T) {
	const unsafe, unmanaged = clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX
	const try = "suspend, context, snapshot seeded=true, resume"
	const blind = "suspend, context, snapshot seeded=false, resume"
	for _, c := range []struct {
		name    string
		rt      windows
		verdict seed.Verdict
		want    string
		advice  Advice
		tries   int
	}{
		{"seeded", windows{results: results(0)}, seed.Found, try, AdviceComplete, 1},
		{"managed on top: the CLR's own context is the better one", windows{results: results(0)},
			seed.NotNeeded, blind, AdviceComplete, 1},
		{"a seed in doubt is not given", windows{results: results(0)}, seed.Unsafe, blind, AdviceComplete, 1},
		{"a walk cut short gives no seed", windows{results: results(0)},
			seed.Truncated, blind, AdviceComplete, 1},
		{"no managed frame", windows{results: results(clr.E_FAIL)},
			seed.NoManaged, blind, AdviceNativeOnly, 1},
		{"no managed frame, exception", windows{results: results(unmanaged)},
			seed.NoManaged, blind, AdviceNativeOnly, 1},
		{"the target owns a lock of the CLR", windows{results: results(unsafe, 0)}, seed.Found,
			try + ", pause 1000000, " + try, AdviceComplete, 2},
		{"twice", windows{results: results(unsafe, unsafe, 0)}, seed.Found,
			try + ", pause 1000000, " + try + ", pause 2000000, " + try, AdviceComplete, 3},
		{"a good seed is thrown out in a collection's wait", windows{results: results(clr.E_FAIL, 0)},
			seed.Found, try + ", pause 1000000, " + try, AdviceComplete, 2},
		{"destroyed before", windows{dead: true}, seed.Found, "", AdviceGone, 0},
		{"ended before the suspension", windows{status: clr.SuspendGone},
			seed.Found, "suspend", AdviceGone, 0},
		{"no right", windows{status: clr.SuspendDenied}, seed.Found, "suspend", AdviceDenied, 0},
		{"ended while suspended", windows{lost: true}, seed.Found, "suspend, context, resume", AdviceGone, 1},
		{"refused for ever", windows{results: results(clr.CORPROF_E_INCONSISTENT_WITH_FLAGS)},
			seed.Found, try, AdviceRefused, 1},
		{"more frames than room", windows{results: results(clr.CORPROF_E_STACKSNAPSHOT_ABORTED)},
			seed.Found, try, AdvicePartial, 1},
		{"a fault that the CLR caught", windows{results: results(clr.E_UNEXPECTED)},
			seed.Found, try, AdvicePartial, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := c.rt
			rt.frames, rt.dead = 1, false
			s := NewThreads(&rt, says(c.verdict))
			s.Prime(threads(1))
			rt.log, rt.dead = nil, c.rt.dead
			s.Capture.Loading = true // left by an earlier sample
			o := s.Sample(threads(1)[0])
			got := strings.Join(rt.log, ", ")
			expect.True(t, got == c.want, "calls: %s\nwant:  %s", got, c.want)
			expect.True(t, o.Advice == c.advice && o.Tries == c.tries,
				"advice %v after %d tries, want %v after %d", o.Advice, o.Tries, c.advice, c.tries)
			checkTries(t, &o, &c.rt, c.verdict)
			expect.True(t, len(rt.bad) == 0 && rt.count == 0 && rt.claimed == 0,
				"suspend count %d, claims %d, bad %v", rt.count, rt.claimed, rt.bad)
		})
	}
}

// checkTries compares the record of each try with the script of w. Its clock advances by 10 per
// call, and by 3 in Resume.
func checkTries(t *testing.T, o *ThreadOutcome, w *windows, v seed.Verdict) {
	t.Helper()
	for i, try := range o.Each {
		want := Try{}
		if i < o.Tries {
			want = Try{Verdict: seed.Truncated, SuspendedNS: 13}
		}
		if i < o.Tries && !w.lost {
			want = Try{Captured: true, Verdict: v, Result: w.results[min(i, len(w.results)-1)],
				SuspendedNS: 43, ContextNS: 10, SeedNS: 10, SnapshotNS: 10}
		}
		expect.Equal(t, try, want, "try %d", i)
	}
}

// stub is a Seeder. At IP 1 the thread is in managed code and needs no seed. At any other IP the thread is in
// a stub, and Seed returns verdict.
type stub struct {
	verdict seed.Verdict
	wrong   uint64 // is added to a register of the seed
}

func (v *stub) Seed(c *clr.Capture) seed.Verdict {
	c.Seed = c.Regs
	if c.Regs.IP() == 1 {
		c.Seed.AMD64.GPR[context.RBX] += v.wrong
		return seed.NotNeeded
	}
	return v.verdict
}

// at is a windows whose thread is at the given ips in turn. Then it has no context.
type at struct {
	windows
	ips   []uint64
	rax   []uint64
	stack [8]byte
}

func (w *at) Context(slot int, c *clr.Capture) bool {
	if len(w.ips) == 0 {
		w.note("context")
		return false
	}
	c.Regs.Arch = context.ArchAMD64
	c.Regs.AMD64.RIP, w.ips = w.ips[0], w.ips[1:]
	c.Regs.AMD64.GPR[0], w.rax = w.rax[0], w.rax[1:]
	c.Stack.Data = w.stack[:]
	return w.windows.Context(slot, c)
}

// A collector may redirect a suspended thread between our capture and the CLR's walk. The first context is
// then a seed, but only if nothing else explains the difference.
func TestRedirectedWhileSuspended(t *testing.T) {
	const unmanaged = clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX
	const first = "suspend, context, snapshot seeded=false, "
	for _, c := range []struct {
		name     string
		ips, rax []uint64
		again    seed.Verdict
		result   clr.HRESULT
		want     string
	}{
		{"redirected", []uint64{1, 2}, []uint64{7, 7}, seed.StubOnTop, unmanaged,
			first + "context, snapshot seeded=true, resume"},
		{"it has run on: nothing is known", []uint64{1, 2}, []uint64{7, 8}, seed.StubOnTop,
			unmanaged, first + "context, resume"},
		{"in unmanaged code, not a stub", []uint64{1, 2}, []uint64{7, 7}, seed.NoManaged,
			unmanaged, first + "context, resume"},
		{"where it was", []uint64{1, 1}, []uint64{7, 7}, seed.StubOnTop,
			unmanaged, first + "context, resume"},
		{"no context", []uint64{1}, []uint64{7}, seed.StubOnTop, unmanaged, first + "context, resume"},
		{"refused for another reason", []uint64{1}, []uint64{7}, seed.StubOnTop,
			clr.CORPROF_E_INCONSISTENT_WITH_FLAGS, first + "resume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := at{windows: windows{frames: 1, results: results(c.result, 0)}, ips: c.ips, rax: c.rax}
			s := NewThreads(&rt, &stub{c.again, 0})
			s.Prime(threads(1))
			rt.log = nil
			var o ThreadOutcome
			s.once(threads(1)[0], &o)
			got := strings.Join(rt.log, ", ")
			expect.True(t, got == c.want, "calls: %s\nwant:  %s", got, c.want)
			if o.Verdict != seed.NotNeeded || s.Capture.Regs.IP() != 1 ||
				s.Capture.Seeded && s.Capture.Seed.IP() != 1 {
				t.Errorf("%v, captured at %d", o.Verdict, s.Capture.Regs.IP())
			}
			// The second capture has overwritten the stack that belongs to the registers.
			if moved := c.rax[0] != c.rax[len(c.rax)-1]; moved != (len(s.Capture.Stack.Data) == 0) {
				t.Errorf("moved %v, %d bytes of stack", moved, len(s.Capture.Stack.Data))
			}
		})
	}
}

// The second capture must have the registers of the seed, not only those of the first one.
func TestRedirectedSeed(t *testing.T) {
	for _, wrong := range []uint64{0, 1} {
		rt := at{windows: windows{frames: 1, results: results(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, 0)},
			ips: []uint64{1, 2}, rax: []uint64{7, 7}}
		s := NewThreads(&rt, &stub{seed.StubOnTop, wrong})
		s.Prime(threads(1))
		s.once(threads(1)[0], new(ThreadOutcome))
		expect.Equal(t, s.Capture.Seeded, wrong == 0, "a seed that differs by %d", wrong)
	}
}

// contradicted is a stub whose witnesses refuse the method on top.
type contradicted struct{ stub }

func (v *contradicted) Seed(c *clr.Capture) seed.Verdict {
	if c.Redirected {
		return seed.Unsafe
	}
	return v.stub.Seed(c)
}

// A method on top is passed only if no witness contradicts it.
func TestRedirectedContradicted(t *testing.T) {
	rt := at{windows: windows{frames: 1, results: results(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, 0)},
		ips: []uint64{1, 2}, rax: []uint64{7, 7}}
	s := NewThreads(&rt, &contradicted{stub{seed.StubOnTop, 0}})
	s.Prime(threads(1))
	s.once(threads(1)[0], new(ThreadOutcome))
	expect.True(t, !s.Capture.Seeded, "a contradicted seed is passed")
}

// Between gets each capture after its suspension.
func TestBetween(t *testing.T) {
	rt := windows{results: results(clr.E_FAIL, 0), frames: 1}
	s := NewThreads(&rt, says(seed.Unsafe))
	s.Prime(threads(1))
	s.Between = func(c *clr.Capture) {
		rt.must(rt.count == 0 && c.Status == clr.Captured, "Between in the window, or without a capture")
		rt.note("between")
	}
	rt.log = nil
	s.Sample(threads(1)[0])
	const try = "suspend, context, snapshot seeded=false, resume, between"
	expect.Equal(t, strings.Join(rt.log, ", "), try+", pause 1000000, "+try)
	rt.lost, rt.log = true, nil
	s.Sample(threads(1)[0])
	expect.Equal(t, strings.Join(rt.log, ", "), "suspend, context, resume", "without a context")
	expect.Equal(t, len(rt.bad), 0)
}

// A CLR that always refuses temporarily ends the sample after a bounded number of tries.
func TestTriesAreBounded(t *testing.T) {
	rt := windows{frames: 1, results: results(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)}
	s := NewThreads(&rt, says(seed.Found))
	s.Prime(threads(1))
	o := s.Sample(threads(1)[0])
	expect.True(t, o.Tries == MaxTries && o.Advice == AdviceRetry, "%+v", o)
}

// Until a priming walk has reported a frame, nothing is suspended.
func TestPrime(t *testing.T) {
	rt := windows{frames: 3, results: results(0)}
	s := NewThreads(&rt, says(seed.Found))
	if o := s.Sample(threads(1)[0]); o.Advice != AdviceNotPrimed || len(rt.log) > 0 {
		t.Errorf("sampled before priming: %+v, %v", o, rt.log)
	}
	expect.True(t, s.Prime(threads(13, 7, 8)) && strings.Join(rt.log, ", ") == "prime 13, prime 7",
		"primed %v: %v", s.primed, rt.log)
	expect.True(t, len(rt.bad) == 0, "%+v", rt.bad)
}

func TestSampleDoesNotAllocate(t *testing.T) {
	rt := windows{frames: 1, quiet: true, results: results(0)}
	s := NewThreads(&rt, says(seed.Found))
	s.Prime(threads(1))
	th := threads(1)[0]
	expect.Equal(t, testing.AllocsPerRun(100, func() { s.Sample(th) }), 0, "allocations")
}

// oneStep is a walker that leaves one frame. It takes the word at the stack pointer for the return address.
type oneStep struct {
	unwind.Walker
	bounds unwind.Bounds // of the last walk
}

func (w *oneStep) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	_ []unwind.Frame) unwind.Result {
	w.bounds = *b
	caller, _ := mem.Word(s.Regs.SP())
	s.Regs.SetIP(caller)
	s.Regs.AMD64.GPR[4] += 8
	return unwind.Result{N: 1, Stop: unwind.Managed}
}

// A seed comes from the stack of its own capture and the bounds of its own thread. The captured registers
// stay.
func TestSeeder(t *testing.T) {
	const stub = 0x7000
	var w oneStep
	var p managed.Specials
	p.Redirect.Add(memory.Range{Start: stub, End: stub + 16})
	s := NewSeeder(&w, nil)
	for _, c := range []struct{ ip, sp, caller uint64 }{
		{0x1000, 0x10000, 0x5000}, {0x1100, 0x20000, 0x6000},
	} {
		var k clr.Capture
		k.Regs.Arch = context.ArchAMD64
		k.Regs.AMD64.RIP, k.Regs.AMD64.GPR[4] = c.ip, c.sp
		k.Thread.StackLow, k.Thread.StackHigh = c.sp, c.sp+0x100
		k.Stack = memory.Run{Addr: c.sp, Data: []byte{1: byte(c.caller >> 8), 15: 0}}
		s.Seed(&k)
		expect.True(t, k.Seed.IP() == c.caller && k.Seed.SP() == c.sp+8,
			"seed %#x, sp %#x", k.Seed.IP(), k.Seed.SP())
		expect.True(t, k.Regs.IP() == c.ip && k.Regs.SP() == c.sp, "the capture is at %#x", k.Regs.IP())
		expect.Equal(t, w.bounds, unwind.Bounds{Low: c.sp, High: c.sp + 0x100}, "bounds")
	}
	s.SetSpecials(&p)
	var k clr.Capture
	k.Regs.Arch = context.ArchAMD64
	k.Regs.AMD64.RIP = stub
	expect.Equal(t, s.Seed(&k), seed.StubOnTop, "in a stub")
}

// inTable is a oneStep with a module table.
type inTable struct {
	oneStep
	table *module.Table
}

func (w *inTable) Table() *module.Table { return w.table }

func (w *inTable) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) unwind.Result {
	s.Reached(false, unwind.TrustLeaf)
	return w.oneStep.Walk(s, mem, b, out)
}

// ignorant is a seed.Learner that knows no code and learns some once.
type ignorant struct{ learned int }

func (*ignorant) Caller(*unwind.State, *memory.Window, *unwind.Bounds) unwind.Stop {
	return unwind.NoInfo
}

func (l *ignorant) LearnMissed() bool { l.learned++; return l.learned == 1 }

// Learn walks the capture again, but the capture stays what DoStackSnapshot got.
func TestLearnKeepsCapture(t *testing.T) {
	const ip, sp, caller = 0x1000, 0x10000, 0x5000
	var l ignorant
	code := []memory.Range{{Start: caller, End: caller + 0x100}}
	s := NewSeeder(&inTable{table: module.NewTable(1, nil, code)}, nil)
	s.SetMethods(&l)
	var k clr.Capture
	k.Regs.Arch = context.ArchAMD64
	k.Regs.AMD64.Known = context.AMD64All
	k.Regs.SetIP(ip)
	k.Regs.SetSP(sp)
	k.Thread.StackLow, k.Thread.StackHigh = sp, sp+0x100
	k.Stack = memory.Run{Addr: sp, Data: []byte{0: 0x10, 1: caller >> 8, 15: 0}}
	s.Seed(&k)
	k.Seed.SetIP(0x1234)
	k.Loading = true
	s.Learn(&k)
	expect.True(t, l.learned > 0 && k.Seed.IP() == 0x1234 && k.Loading, "learned %d, seed %#x, loading %v",
		l.learned, k.Seed.IP(), k.Loading)
}
