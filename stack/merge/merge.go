// Package merge combines the CLR's managed frames and our unmanaged ones into one stack: leaf to root, every
// unmanaged block filled.
//
// Sources: the contract of ICorProfilerInfo2::DoStackSnapshot (dotnet/runtime src/coreclr/inc/corprof.idl);
// behavior measured on .NET 9 and 10.
//
// Glossary. A *marker* is the CLR's callback for one unmanaged block; its context is where the walk of that
// block starts. A *hidden* frame is managed code or a stub that the CLR runs but does not report: exception
// handling helpers, IL stubs.
//
// Strategy. Walk unmanaged frames until managed code. Compare that frame with the next one the CLR reported:
// they are the same if the method is the same and either SP is equal, or FP is equal in a frame that has
// grown. IP is not compared, because it differs for an inlined P/Invoke. If they are the same, take the CLR's
// frames up to its next marker. Continue from the marker's context. If not, the frame is hidden: step over
// it and compare again. Frames that the CLR hides between two reported ones, without a marker, are found by
// the runtime's tables (fill.go). Each failure becomes a visible gap, and the merge continues at the next
// frame the CLR reported. Differences between architectures are in a table (arch.go) and in the walker.
//
// Known gaps: on ARM64 a guessed step knows its caller's frame pointer, but only a lower limit of its SP. So
// an unmanaged frame below hidden frames is found only if its unwind data starts from the frame pointer.
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

// unmanaged sets f to a walker's frame, without a copy.
func (f *Frame) unmanaged(w *unwind.Frame) {
	f.IP, f.SP, f.FP, f.Function, f.Module = w.IP, w.SP, w.FP, 0, w.Module
	f.Kind, f.Trust, f.Gap, f.Exact = w.Kind, w.Trust, GapNone, w.Exact
}

// Address is the frame's address in code.
func (f *Frame) Address() unwind.Address { return unwind.Address{IP: f.IP, Exact: f.Exact} }

// Functions returns the method whose code is at an IP.
type Functions interface {
	FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT)
}

// Result describes a merged stack.
type Result struct {
	N        int // frames written
	Gap      Gap // the first gap; GapNone: the stack is complete
	Verdict  seed.Verdict
	Managed  int // managed frames written that the CLR reported
	Hidden   int // managed or stub frames only the walk saw
	Doubtful int // frames found by a guess that nothing confirmed
	Probe    int // leading frames in which the thread waits for the suspension to end
}

// Complete reports whether no frame is missing.
func (r *Result) Complete() bool { return r.Gap == GapNone }

// Merger merges one capture at a time. It is not safe for concurrent use.
type Merger struct {
	w         unwind.Walker
	arch      *arch
	functions Functions
	tables    Managed // nil: no tables, so hidden managed frames need a guess
	hooks     hooks   // nil: the walker knows none
	specials  *managed.Specials
	mem       memory.Window
	bounds    unwind.Bounds
	guesses   unwind.Bounds // the same, allowing a guess
	buf       [256]unwind.Frame
	waits     waits
	sizes     sizes
	entries   entries

	// The state of the current merge. Arguments of calls through interfaces are here, so that they are not
	// allocated.
	at      unwind.State // of regs
	regs    context.Registers
	here    place        // in regs
	ahead   unwind.State // of to: where the current step arrives
	to      context.Registers
	in      *clr.Capture
	out     []Frame
	res     Result
	next    int // first frame of in.Frames not yet merged
	top     seed.Outcome
	witness seed.Witness
	guess   int  // index in out of the first frame that depends on a guess, -1 if none
	ended   bool // the CLR's report ended early, and the walk continues by the tables
}

// New returns a merger of stacks of w's architecture that walks with w.
func New(w unwind.Walker, f Functions) *Merger {
	m := &Merger{w: w, arch: &arches[w.Arch()], functions: f, guesses: unwind.Bounds{Guess: true}}
	m.hooks, _ = w.(hooks)
	m.regs.Arch = w.Arch()
	m.here = placeOf(&m.regs)
	return m
}

// SetTable sets the module table of the next merges; the indices in Frame.Module refer to it.
func (m *Merger) SetTable(t *module.Table) { m.w.SetTable(t) }

// SetSpecials sets the code where a walk cannot begin; nil removes it.
func (m *Merger) SetSpecials(s *managed.Specials) { m.specials = s }

// Merge writes the merged stack of c to out, leaf first.
func (m *Merger) Merge(c *clr.Capture, out []Frame) Result {
	m.in, m.out, m.res, m.next, m.guess, m.ended = c, out, Result{}, 0, -1, false
	m.at = unwind.State{Regs: &m.regs}
	m.mem.Reset(c.Stack.Addr, c.Stack.Data)
	// Field by field: a copy of a whole struct right after writes to parts of it waits until these are in the
	// cache.
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
	m.top = seed.Find(m.specials, m.w, &m.at, &m.mem, &m.bounds, m.buf[:], &m.witness)
	m.res.Verdict = m.top.Verdict
	if g = gapOfVerdict(&m.top); g != GapNone {
		m.native(m.top.Frames)
		return m.lost(g)
	}
	return m.walked(m.top.Frames, m.top.Stop)
}

// block walks one unmanaged block and the frames below it. It returns false when the stack is complete or
// cannot continue.
// A marker at the first byte of a function is no block: the CLR has read the address of its hijack stub, for
// example from the link register of a method that is about to return. The frames below it are not known.
func (m *Merger) block() bool {
	if !m.at.Exact && m.at.Trust == unwind.TrustCLR && m.entries.has(m.w.Table(), m.ip()) {
		return m.lost(GapCLRCut)
	}
	r := m.w.Walk(&m.at, &m.mem, &m.bounds, m.buf[:])
	return m.walked(r.N, r.Stop)
}

// walked adds the n frames of a walk and continues according to the reason why it stopped.
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

// same decides whether the current frame is in.Frames[i], which the CLR reported.
func (m *Merger) same(i int, fid clr.FunctionID, known bool) bool {
	f := &m.in.Frames[i]
	if known {
		return fid == f.Function && (f.SP == m.sp() || f.FP == m.fp() && f.FP != 0 && m.grown(i))
	}
	// A stub on top of f's frame may have f's SP if a call pushes nothing.
	return f.SP == m.sp() && !(m.arch.callPushes == 0 && m.at.Exact)
}

// grown decides whether the current frame is in.Frames[i] although its SP differs. For a method that calls
// unmanaged code directly, the CLR reports the SP after the prolog; later allocations on the stack are below
// it. The frame pointer alone proves nothing: a method without one has its caller's (in a recursion, too),
// and a funclet has its method's.
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

// frameless decides whether the current frame is a stub without a frame (or not yet with one) called by f:
// the frame pointer is f's, and no function was called between them. Native functions without a frame pointer
// also leave f's in the register; a stub that they call on the way into a method must not hide them.
func (m *Merger) frameless(f *clr.SnapshotFrame) bool {
	return f.FP == m.fp() && f.FP != 0 && m.sp() <= f.SP && !m.codeBetween(m.sp(), f.SP-m.arch.callPushes)
}

// maxStub bounds the bytes that a stub without a frame has pushed.
const maxStub = 256

// codeBetween reports whether there may be a return address between two places on the stack: a word that is
// an address in code.
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

// atEntry decides whether the current frame is code that f called and that was interrupted before it changed
// the stack. Then only the words that the call pushed are between them, and no other frame can be. Later in a
// method the frame pointer may also be the caller's, as in funclets, with frames between.
func (m *Merger) atEntry(f *clr.SnapshotFrame) bool {
	return m.at.Exact && m.sp()+m.arch.callPushes == f.SP && m.fp() == f.FP
}

// unreported records a frame the CLR does not report and steps over it.
func (m *Merger) unreported(fid clr.FunctionID, known bool) bool {
	if !m.room() {
		return m.lost(GapLimit)
	}
	m.putHidden(fid, known)
	if i := m.nextManaged(); i >= 0 &&
		(m.atEntry(&m.in.Frames[i]) || !known && m.frameless(&m.in.Frames[i])) {
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

// hijacked decides whether the CLR has replaced the return address of the current managed frame to regain
// control. Then its caller is f, the next frame that the CLR reported, though the return address read is not
// managed. If SP may be a guess, the frame pointer must match, and the return address must be one that no
// call can have made.
func (m *Merger) hijacked(f *clr.SnapshotFrame) bool {
	if f.SP == m.sp() {
		return !m.w.Table().IsManaged(m.at.Address().Lookup())
	}
	return m.arch.frameRecord && m.at.Trust.Doubtful() && f.FP == m.fp() && f.FP != 0 &&
		m.entries.has(m.w.Table(), m.ip())
}

// moveTo makes f, which the CLR reported, the current frame, with the registers that the CLR reported.
func (m *Merger) moveTo(f *clr.SnapshotFrame) {
	f.Load(&m.regs)
	m.at.Exact, m.at.Trust = false, unwind.TrustCLR
}

// report writes the run of managed frames that starts at in.Frames[i] and sets the current frame to the
// marker below it. here means that the walk is at the first of them. The walk's registers are then better
// than the CLR's, which for an inlined P/Invoke are those of its prolog; an SP that is only a lower limit is
// not used.
func (m *Merger) report(i int, here bool) bool {
	m.guess = -1
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
	m.moveTo(&frames[i])
	m.next = i + 1
	return true
}

// lost writes a gap and continues at the next frame the CLR reported. If a guess has passed that frame, the
// guess is wrong, and its frames are removed: they would appear twice or at the wrong place.
func (m *Merger) lost(g Gap) bool {
	i := m.nextManaged()
	if i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP {
		m.dropGuess()
	}
	m.gap(g)
	return i >= 0 && m.report(i, false)
}

// dropGuess removes all frames that depend on a guess and sets SP back to where the guess began. None of them
// is a gap: after a gap the merge continues only at a frame that the CLR reported.
func (m *Merger) dropGuess() {
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

// nextManaged is the index of the next managed frame that the CLR reported and the merge has not written, or
// -1.
func (m *Merger) nextManaged() int {
	for i := m.next; i < len(m.in.Frames); i++ {
		if !m.in.Frames[i].Marker() {
			return i
		}
	}
	return -1
}
