// Package merge makes one stack of the CLR's managed frames and our unmanaged
// ones: leaf to root, every unmanaged block filled.
//
// Sources: the contract of ICorProfilerInfo2::DoStackSnapshot (dotnet/runtime
// src/coreclr/inc/corprof.idl); behaviour measured on .NET 9 and 10.
//
// Glossary. A *marker* is the CLR's callback for one unmanaged block; its
// context is where the walk of that block starts. A *hidden* frame is managed
// code or a stub that the CLR runs but does not report: exception handling
// helpers, IL stubs.
//
// Strategy. Walk unmanaged frames until managed code. If that frame is the
// next one the CLR reported (same method, and same SP or same FP; never the
// same ip: an inlined P/Invoke's differs), take the CLR's frames up to its
// next marker and go on from the marker's context. If not, it is hidden: step
// over it and look again. Whatever fails becomes a visible gap, and the merge
// goes on at the next frame the CLR knows.
//
// Known gaps: x86-64 only so far.
package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// Frame is one frame of a merged stack.
type Frame struct {
	IP       uint64
	SP       uint64
	FP       uint64
	Function clr.FunctionID // of a managed frame, 0 if unknown
	Module   int32          // index into the module table, -1 if none
	Kind     unwind.Kind
	Trust    unwind.Trust
	Gap      Gap // reason, of a frame of KindGap
	Exact    bool
}

// Functions tells which method's code is at an ip.
type Functions interface {
	FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT)
}

// Result says what a merge found.
type Result struct {
	N        int // frames written
	Gap      Gap // the first gap; GapNone: the stack is complete
	Verdict  seed.Verdict
	Managed  int // managed frames the CLR reported
	Hidden   int // managed or stub frames only the walk saw
	Doubtful int // frames found by a guess that nothing confirmed
	Probe    int // leading frames in which the thread waits for the suspension to end
}

// Complete reports whether no frame is missing.
func (r *Result) Complete() bool { return r.Gap == GapNone }

// maxHidden bounds the guessed steps between two frames the CLR reported.
const maxHidden = 64

// Merger merges one capture at a time. It is not safe for concurrent use.
type Merger struct {
	u         *amd64.Unwinder
	functions Functions
	contract  Managed // nil: hidden managed frames are stepped by a guess
	mem       memory.Window
	bounds    unwind.Bounds
	buf       [256]unwind.Frame
	waits     waits

	// The state of the merge under way.
	in     *clr.Capture
	out    []Frame
	res    Result
	next   int // first frame of in.Frames not yet merged
	regs   context.AMD64
	to     context.AMD64 // regs after a step under way
	exact  bool
	trust  unwind.Trust
	guess  int // index in out from where frames rest on a guess, -1 if none
	hidden int // guessed steps since the last frame the CLR confirmed
}

// New returns a merger that walks with u.
func New(u *amd64.Unwinder, f Functions) *Merger { return &Merger{u: u, functions: f} }

// Merge writes the merged stack of c to out, leaf first.
func (m *Merger) Merge(c *clr.Capture, out []Frame) Result {
	m.in, m.out, m.res, m.next, m.guess, m.hidden = c, out, Result{}, 0, -1, 0
	m.mem.Reset(c.Stack.Addr, c.Stack.Data)
	m.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	m.res.Verdict = seed.Truncated
	for more := m.leaf(); more; {
		more = m.block()
	}
	return m.finish()
}

// leaf walks the topmost unmanaged block and judges it as a seed.
func (m *Merger) leaf() bool {
	if g := gapOfCapture(m.in.Status); g != GapNone {
		m.gap(g)
		return m.resync()
	}
	m.trust = unwind.TrustContext
	s := seed.Find(m.u, &m.in.Regs, &m.mem, &m.bounds, m.buf[:])
	m.res.Verdict, m.regs = s.Verdict, s.Regs
	return m.walked(s.Frames, s.Exact, s.Stop)
}

// block walks one unmanaged block and what stands below it. It answers false
// when the stack is done.
func (m *Merger) block() bool {
	n, exact, stop := m.u.Walk(&m.regs, m.exact, m.trust, &m.mem, &m.bounds, m.buf[:])
	return m.walked(n, exact, stop)
}

// walked takes over the n frames of a walk and goes on by why it stopped.
func (m *Merger) walked(n int, exact bool, stop unwind.Stop) bool {
	if m.fresh(n, stop) {
		n, stop = n-1, unwind.Managed
		m.rejudge(n)
	}
	m.native(n)
	m.exact = exact
	if n > 0 {
		m.trust = m.buf[n-1].Trust.Then(m.u.StepTrust())
	}
	switch stop {
	case unwind.Managed:
		return m.managed()
	case unwind.BufferFull:
		return m.room()
	case unwind.EndOfStack:
		if m.nextManaged() < 0 {
			return false
		}
		m.gap(GapLostManaged)
	default:
		m.gap(gapOfStop(stop, m.in.Truncated))
	}
	return m.resync()
}

// managed handles a walk that arrived at managed code.
func (m *Merger) managed() bool {
	i := m.nextManaged()
	fid, hr := m.functions.FunctionFromIP(m.regs.RIP)
	known := !hr.Failed() && fid != 0
	if m.contract == nil && known && m.refused() {
		m.gap(GapCLRRefused)
	}
	if i >= 0 && m.same(&m.in.Frames[i], fid, known) {
		return m.report(i, true)
	}
	if i >= 0 && m.regs.SP() > m.in.Frames[i].SP && m.regs.SP() > m.in.Frames[i].FP {
		m.gap(GapMismatch)
		return m.resync()
	}
	return m.hide(fid, known)
}

// same decides whether the walk stands at the frame f that the CLR reported.
func (m *Merger) same(f *clr.SnapshotFrame, fid clr.FunctionID, known bool) bool {
	if known && fid != f.Function {
		return false
	}
	return f.SP == m.regs.SP() || f.FP == m.regs.FP() && f.FP != 0
}

// hide records a frame the CLR does not report and steps over it.
func (m *Merger) hide(fid clr.FunctionID, known bool) bool {
	if !m.room() {
		m.gap(GapLimit)
		return m.resync()
	}
	f := Frame{IP: m.regs.RIP, SP: m.regs.SP(), FP: m.regs.FP(), Module: -1, Kind: unwind.KindStub, Trust: m.trust, Exact: m.exact}
	if known {
		f.Kind, f.Function = unwind.KindManaged, fid
	}
	m.res.Hidden++
	m.put(f)
	stop := m.over()
	if stop == unwind.EndOfStack && m.nextManaged() < 0 {
		return false
	}
	if stop != unwind.StopNone {
		m.gap(gapOfStop(stop, m.in.Truncated))
		return m.resync()
	}
	if m.trust.Doubtful() && m.guess < 0 {
		m.guess = m.res.N
	}
	if i := m.nextManaged(); i >= 0 && m.hijacked(&m.in.Frames[i]) {
		return m.report(i, false)
	}
	return true
}

// hijacked tells a managed frame whose return address the CLR has replaced to
// regain control: its caller's stack pointer is that of the next frame the CLR
// reported, though the return address read is not managed.
func (m *Merger) hijacked(f *clr.SnapshotFrame) bool {
	return f.SP == m.regs.SP() && !m.u.Table().IsManaged(unwind.LookupIP(m.regs.RIP, m.exact))
}

// report writes the run of managed frames that starts at in.Frames[i] and
// places the walk at the marker below it. here says that the walk stands at
// the first of them: its physical registers are better than the CLR's, which
// for an inlined P/Invoke are those of its prolog.
func (m *Merger) report(i int, here bool) bool {
	m.guess, m.hidden = -1, 0
	frames := m.in.Frames
	for ; i < len(frames) && !frames[i].Marker(); i++ {
		f := &frames[i]
		g := Frame{IP: f.IP, SP: f.SP, FP: f.FP, Function: f.Function, Module: -1, Kind: unwind.KindManaged, Trust: unwind.TrustCLR}
		if here {
			g.IP, g.SP, g.FP, g.Exact = m.regs.RIP, m.regs.SP(), m.regs.FP(), m.exact
			here = false
		}
		m.res.Managed++
		if !m.room() {
			m.gap(GapLimit)
			return false
		}
		m.put(g)
	}
	if i == len(frames) {
		m.gap(GapCLRCut)
		return false
	}
	m.regs, m.exact, m.trust = frames[i].AMD64(), false, unwind.TrustCLR
	m.next = i + 1
	return true
}

// resync goes on at the next frame the CLR reported, after a gap.
func (m *Merger) resync() bool {
	i := m.nextManaged()
	return i >= 0 && m.report(i, false)
}

// nextManaged returns the index of the next managed frame the CLR reported and
// the merge has not written, or -1.
func (m *Merger) nextManaged() int {
	for i := m.next; i < len(m.in.Frames); i++ {
		if !m.in.Frames[i].Marker() {
			return i
		}
	}
	return -1
}

// native appends the n frames of a walk.
func (m *Merger) native(n int) {
	for i := range m.buf[:n] {
		f := &m.buf[i]
		if f.Trust.Doubtful() && m.guess < 0 {
			m.guess = m.res.N
		}
		if !m.room() {
			m.gap(GapLimit)
			return
		}
		m.put(Frame{IP: f.IP, SP: f.SP, FP: f.FP, Module: f.Module, Kind: f.Kind, Trust: f.Trust, Exact: f.Exact})
	}
}

// room keeps one frame free for a gap.
func (m *Merger) room() bool { return m.res.N < len(m.out)-1 }

func (m *Merger) put(f Frame) {
	m.out[m.res.N] = f
	m.res.N++
}

// gap marks missing frames. Two gaps never follow each other.
func (m *Merger) gap(g Gap) {
	if m.res.Gap == GapNone {
		m.res.Gap = g
	}
	if n := m.res.N; n < len(m.out) && (n == 0 || m.out[n-1].Kind != unwind.KindGap) {
		m.put(Frame{Kind: unwind.KindGap, Gap: g, Module: -1, SP: m.regs.SP()})
	}
}

// finish counts what rests on a guess that no frame of the CLR confirmed, and
// what the suspension itself put there.
func (m *Merger) finish() Result {
	if m.guess >= 0 {
		m.res.Doubtful = m.res.N - m.guess
	}
	m.res.Probe = m.probe(m.out[:m.res.N])
	return m.res
}
