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
// next one the CLR reported (same method, and same SP, or same FP in a frame
// that has grown; never the same ip: an inlined P/Invoke's differs), take the CLR's frames up to its
// next marker and go on from the marker's context. If not, it is hidden: step
// over it and look again. What the CLR hides between two frames it reports
// without a marker is found by the runtime's tables (fill.go). Whatever fails
// becomes a visible gap, and the merge goes on at the next frame the CLR knows. What
// differs between architectures is a table (arch.go) and the walker that is
// given.
//
// Known gaps: on ARM64 a guessed step knows its caller's frame pointer but only
// the lowest its SP can be, so an unmanaged frame below hidden frames is found
// only if its unwind data starts from the frame pointer.
package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
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

// Unmanaged converts a walker's frame to one of a merged stack.
func Unmanaged(f *unwind.Frame) (out Frame) {
	out.unmanaged(f)
	return out
}

// unmanaged makes f of a walker's frame, in its place.
func (f *Frame) unmanaged(w *unwind.Frame) {
	f.IP, f.SP, f.FP, f.Function, f.Module = w.IP, w.SP, w.FP, 0, w.Module
	f.Kind, f.Trust, f.Gap, f.Exact = w.Kind, w.Trust, GapNone, w.Exact
}

// Address is where the frame stands.
func (f *Frame) Address() unwind.Address { return unwind.Address{IP: f.IP, Exact: f.Exact} }

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
	w         unwind.Walker
	arch      *arch
	functions Functions
	tables    Managed // nil: there are no tables, so that hidden managed frames need a guess
	hooks     hooks   // nil: the walker knows none
	specials  *managed.Specials
	mem       memory.Window
	bounds    unwind.Bounds
	guesses   unwind.Bounds // the same, allowing a guess
	buf       [256]unwind.Frame
	waits     waits
	sizes     sizes
	entries   entries

	// The state of the merge under way. What a call through an interface takes
	// lies here, so that it allocates nothing.
	at     unwind.State // of regs
	regs   context.Registers
	here   place        // in regs
	ahead  unwind.State // of to: where a step under way arrives
	to     context.Registers
	in     *clr.Capture
	out    []Frame
	res    Result
	next   int // first frame of in.Frames not yet merged
	top    seed.Outcome
	guess  int  // index in out from where frames rest on a guess, -1 if none
	hidden int  // guessed steps since the last frame the CLR confirmed
	ended  bool // the CLR's report ended early, and the tables went on
}

// New returns a merger of stacks of w's architecture that walks with w.
func New(w unwind.Walker, f Functions) *Merger {
	m := &Merger{w: w, arch: &arches[w.Arch()], functions: f, guesses: unwind.Bounds{Guess: true}}
	m.hooks, _ = w.(hooks)
	m.regs.Arch = w.Arch()
	m.here = placeOf(&m.regs)
	return m
}

// SetTable makes t the module table of the merges to come; the indices in
// Frame.Module are of it.
func (m *Merger) SetTable(t *module.Table) { m.w.SetTable(t) }

// SetSpecials sets where a walk cannot begin; nil takes it away.
func (m *Merger) SetSpecials(s *managed.Specials) { m.specials = s }

// Merge writes the merged stack of c to out, leaf first.
func (m *Merger) Merge(c *clr.Capture, out []Frame) Result {
	m.in, m.out, m.res, m.next, m.guess, m.hidden, m.ended = c, out, Result{}, 0, -1, 0, false
	m.at = unwind.State{Regs: &m.regs}
	m.mem.Reset(c.Stack.Addr, c.Stack.Data)
	// Field by field: a struct that is copied right after parts of it were written
	// waits until these are in the cache.
	m.bounds.Low, m.bounds.High = c.Thread.StackLow, c.Thread.StackHigh
	m.guesses.Low, m.guesses.High = c.Thread.StackLow, c.Thread.StackHigh
	m.res.Verdict = seed.Truncated
	for more := m.leaf(); more; {
		more = m.block()
	}
	return m.finish()
}

// leaf walks the topmost unmanaged block and judges it as a seed.
func (m *Merger) leaf() bool {
	g := gapOfCapture(m.in.Status)
	if g == GapNone && m.in.Regs.Arch != m.regs.Arch {
		g = GapUnsupported
	}
	if g != GapNone {
		m.regs = context.Registers{Arch: m.regs.Arch} // the last merge's
		return m.lost(g)
	}
	m.regs.Copy(&m.in.Regs)
	m.at = unwind.Interrupted(&m.regs)
	m.top = seed.Find(m.specials, m.w, &m.at, &m.mem, &m.bounds, m.buf[:])
	m.res.Verdict = m.top.Verdict
	if g = gapOfVerdict(&m.top); g != GapNone {
		m.native(m.top.Frames)
		return m.lost(g)
	}
	return m.walked(m.top.Frames, m.top.Stop)
}

// block walks one unmanaged block and what stands below it. It answers false
// when the stack is done.
//
// A marker at the first byte of a function is no block: the CLR has read the
// address of its hijack stub, as from the link register of a method that is
// about to return, and what is below it is not known.
func (m *Merger) block() bool {
	if !m.at.Exact && m.at.Trust == unwind.TrustCLR && m.entries.has(m.w.Table(), m.ip()) {
		return m.lost(GapCLRCut)
	}
	r := m.w.Walk(&m.at, &m.mem, &m.bounds, m.buf[:])
	return m.walked(r.N, r.Stop)
}

// walked takes over the n frames of a walk and goes on by why it stopped.
func (m *Merger) walked(n int, stop unwind.Stop) bool {
	if m.fresh(n, stop) {
		n, stop = n-1, unwind.Managed
		m.rejudge(n)
	}
	m.native(n)
	switch stop {
	case unwind.Managed:
		return m.managed()
	case unwind.BufferFull:
		return m.room()
	case unwind.EndOfStack:
		return m.nextManaged() >= 0 && m.lost(GapLostManaged)
	}
	return m.lost(GapOfStop(stop, m.in.Truncated))
}

// managed handles a walk that arrived at managed code.
func (m *Merger) managed() bool {
	i := m.nextManaged()
	fid, hr := m.functions.FunctionFromIP(m.ip())
	known := !hr.Failed() && fid != 0
	if m.tables == nil && known && m.refused() {
		m.gap(GapCLRRefused)
	}
	if i >= 0 && m.same(i, fid, known) {
		return m.report(i, true)
	}
	if i >= 0 && m.sp() > m.in.Frames[i].SP && m.sp() > m.in.Frames[i].FP {
		return m.lost(GapMismatch)
	}
	return m.unreported(fid, known)
}

// same decides whether the walk stands at in.Frames[i], a frame that the CLR
// reported.
func (m *Merger) same(i int, fid clr.FunctionID, known bool) bool {
	f := &m.in.Frames[i]
	if known {
		return fid == f.Function && (f.SP == m.sp() || f.FP == m.fp() && f.FP != 0 && m.grown(i))
	}
	// A stub on top of f's frame may have f's SP where a call pushes nothing.
	return f.SP == m.sp() && !(m.arch.callPushes == 0 && m.at.Exact)
}

// grown decides whether the frame the walk stands at is in.Frames[i] though its
// SP is another: of a method that has called unmanaged code by itself the CLR
// knows the SP of the prolog, and what is allocated later lies below it. The
// frame pointer alone proves nothing: methods without one have their caller's, in
// a recursion all the same, and a funclet has its method's.
func (m *Merger) grown(i int) bool {
	f := &m.in.Frames[i]
	if m.arch.frameRecord { // every method has one, and SP may be a guess
		return true
	}
	if f.SP < m.sp() || f.SP > f.FP {
		return false
	}
	if above, ok := m.callerSP(); ok {
		return f.SP < above
	}
	return i+1 < len(m.in.Frames) && m.in.Frames[i+1].FP != f.FP
}

// frameless tells a stub that has made no frame, or not yet, from its caller
// f: the frame pointer is f's, and no function was called between them. Native
// functions without a frame pointer leave f's in its register, too: a stub that
// they call, on its way into a method, must not hide them.
func (m *Merger) frameless(f *clr.SnapshotFrame) bool {
	return f.FP == m.fp() && f.FP != 0 && m.sp() <= f.SP && !m.codeBetween(m.sp(), f.SP-m.arch.callPushes)
}

// maxStub bounds what a stub without a frame has pushed, bytes.
const maxStub = 256

// codeBetween reports whether there may be a return address between two places on the stack:
// a word that is an address in code.
func (m *Merger) codeBetween(low, high uint64) bool {
	if high > low+maxStub {
		return true
	}
	t := m.w.Table()
	for at := low; at+8 <= high; at += 8 {
		if v, ok := m.mem.Word(at); !ok || t.Find(v) >= 0 || t.IsManaged(v) {
			return true
		}
	}
	return false
}

// atEntry tells code that was interrupted before it changed its stack from its
// caller f: what the call pushed lies between them and nothing else, so that no
// frame can. Methods may have their caller's frame pointer later too, as
// funclets do, with frames between.
func (m *Merger) atEntry(f *clr.SnapshotFrame) bool {
	return m.at.Exact && m.sp()+m.arch.callPushes == f.SP && m.fp() == f.FP
}

// unreported records a frame the CLR does not report and steps over it.
func (m *Merger) unreported(fid clr.FunctionID, known bool) bool {
	if !m.room() {
		return m.lost(GapLimit)
	}
	m.putHidden(fid, known)
	if i := m.nextManaged(); i >= 0 && (m.atEntry(&m.in.Frames[i]) || !known && m.frameless(&m.in.Frames[i])) {
		return m.report(i, false)
	}
	stop := m.over()
	if stop == unwind.EndOfStack && m.nextManaged() < 0 {
		return false
	}
	if stop != unwind.StopNone {
		return m.lost(GapOfStop(stop, m.in.Truncated))
	}
	if m.at.Trust.Doubtful() && m.guess < 0 {
		m.guess = m.res.N
	}
	if i := m.nextManaged(); i >= 0 && m.hijacked(&m.in.Frames[i]) {
		return m.report(i, false)
	}
	return true
}

func (m *Merger) putHidden(fid clr.FunctionID, known bool) {
	f := m.add()
	f.IP, f.SP, f.FP, f.Function, f.Module = m.ip(), m.sp(), m.fp(), 0, -1
	f.Kind, f.Trust, f.Gap, f.Exact = unwind.KindStub, m.at.Trust, GapNone, m.at.Exact
	if known {
		f.Kind, f.Function = unwind.KindManaged, fid
	}
	m.res.Hidden++
}

// hijacked tells a managed frame whose return address the CLR has replaced to
// regain control: its caller is the next frame the CLR reported, though the
// return address read is not managed. Where SP may be a guess, the frame pointer
// and a return address that no call can have made tell it.
func (m *Merger) hijacked(f *clr.SnapshotFrame) bool {
	if f.SP == m.sp() {
		return !m.w.Table().IsManaged(m.at.Address().Lookup())
	}
	return m.arch.frameRecord && m.at.Trust.Doubtful() && f.FP == m.fp() && f.FP != 0 && m.entries.has(m.w.Table(), m.ip())
}

// stand makes a frame that the CLR reported the one the merge stands at, with
// the registers that the CLR says.
func (m *Merger) stand(f *clr.SnapshotFrame) {
	f.Load(&m.regs)
	m.at.Exact, m.at.Trust = false, unwind.TrustCLR
}

// report writes the run of managed frames that starts at in.Frames[i] and
// places the walk at the marker below it. here says that the walk stands at
// the first of them: its physical registers are better than the CLR's, which
// for an inlined P/Invoke are those of its prolog; but not an SP that is only
// the lowest it can be.
func (m *Merger) report(i int, here bool) bool {
	m.guess, m.hidden = -1, 0
	frames := m.in.Frames
	for ; i < len(frames) && !frames[i].Marker(); i++ {
		if !m.room() {
			m.gap(GapLimit)
			return false
		}
		m.res.Managed++
		f, g := &frames[i], m.add()
		g.IP, g.SP, g.FP, g.Function, g.Module = f.IP, f.SP, f.FP, f.Function, -1
		g.Kind, g.Trust, g.Gap, g.Exact = unwind.KindManaged, unwind.TrustCLR, GapNone, false
		if here {
			g.IP, g.FP, g.Exact = m.ip(), m.fp(), m.at.Exact
			if !m.arch.frameRecord || !m.at.Trust.Doubtful() {
				g.SP = m.sp()
			}
		}
		if i+1 == len(frames) {
			return m.cut(f, here)
		}
		here = m.tables != nil && m.fill(i, here)
	}
	m.stand(&frames[i])
	m.next = i + 1
	return true
}

// lost goes on at the next frame the CLR reported, after a gap. If a guess has
// gone past that frame, it is wrong and its frames are taken back: they would
// stand twice, or where they are not.
func (m *Merger) lost(g Gap) bool {
	i := m.nextManaged()
	if i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP {
		m.takeBack()
	}
	m.gap(g)
	return i >= 0 && m.report(i, false)
}

// takeBack removes all that rests on a guess, and stands where that began. No gap
// is among it, since a gap that the merge goes on after ends with a frame of the
// CLR's.
func (m *Merger) takeBack() {
	guessed := m.out[m.guess:m.res.N]
	for i := range guessed {
		if k := guessed[i].Kind; k == unwind.KindStub || k == unwind.KindManaged {
			m.res.Hidden--
		}
	}
	if len(guessed) > 0 {
		m.regs.SetSP(guessed[0].SP)
	}
	m.res.N, m.guess = m.guess, -1
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
