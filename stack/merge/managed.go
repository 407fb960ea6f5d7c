package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Managed steps over managed code and stubs by the runtime's own tables. It is
// an interface so that a merge runs without them.
type Managed interface {
	// Step replaces s by its caller and describes the frame it left in f. If the
	// result is not StopNone, s is unchanged.
	Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop
	// Hijacked returns the true return address that the runtime has replaced in a stack slot of a thread.
	Hijacked(thread, slot uint64) (ra uint64, ok bool)
}

// SetManaged makes the next merges step over hidden managed frames by c instead of a guess; nil restores the
// guess.
func (m *Merger) SetManaged(c Managed) { m.tables = c }

// stepByTables steps over a managed frame by the runtime's tables. It returns false, and stays at the frame,
// if they do not know the frame or the caller is not above it on the stack.
func (m *Merger) stepByTables() bool {
	f := &m.buf[0]
	if stop := m.tryStep(f); stop != unwind.StopNone || !m.arch.climbs(&m.at, &m.ahead) ||
		m.bounds.High != 0 && m.to.SP() > m.bounds.High {
		return false
	}
	if m.entries.has(m.w.Table(), m.to.IP()) {
		m.unhijack()
	}
	m.regs.Copy(&m.to)
	m.at.Exact, m.at.Trust = m.ahead.Exact, m.ahead.Trust
	return true
}

// tryStep makes a step by the tables into m.ahead and leaves the current frame unchanged.
func (m *Merger) tryStep(f *unwind.Frame) unwind.Stop {
	m.to.Copy(&m.regs)
	m.ahead = unwind.State{Regs: &m.to, Exact: m.at.Exact, Trust: m.at.Trust}
	return m.tables.Step(&m.ahead, &m.mem, &m.bounds, f)
}

// callerSP returns the caller's stack pointer according to the tables. The current frame stays.
func (m *Merger) callerSP() (sp uint64, ok bool) {
	if m.tables == nil {
		return 0, false
	}
	stop := m.tryStep(&m.buf[0])
	return m.to.SP(), stop == unwind.StopNone
}

// unhijack replaces the hijack stub's address, at which the step ahead has arrived, by the true return
// address. The stub's address must be in the slot.
func (m *Merger) unhijack() {
	slot := m.arch.returnSlot(&m.regs, &m.to)
	if v, ok := m.mem.Word(slot); !ok || v != m.to.IP() {
		return
	}
	if ra, ok := m.tables.Hijacked(uint64(m.in.Thread.ID), slot); ok {
		m.to.ReturnTo(ra)
	}
}

// refused reports whether the CLR refused the stack, so that managed frames depend on a guess.
func (m *Merger) refused() bool {
	return m.in.Result.Failed() && m.res.Gap == GapNone && m.nextManaged() < 0
}

// cut continues, by the runtime's tables, below f, the last frame of a report that ends early. From here on
// the merge works as without any report of the CLR. here means that the walk is at f. Without tables, or if
// they do not know f, cut writes a gap and returns false.
func (m *Merger) cut(f *clr.SnapshotFrame, here bool) bool {
	m.next = len(m.in.Frames)
	if m.tables == nil {
		m.gap(GapCLRCut)
		return false
	}
	if !here {
		f.Load(&m.regs)
		m.at.Exact = false
	}
	m.at.Trust = unwind.TrustCLR
	if !m.stepByTables() {
		m.gap(GapCLRCut)
		return false
	}
	m.ended = true
	return true
}

// over steps over the current managed frame or stub: by the runtime's tables if they know it, else by a
// guess. Each such step goes up the stack, and room limits their number.
func (m *Merger) over() unwind.Stop {
	if m.tables != nil {
		if m.stepByTables() {
			return unwind.StopNone
		}
		switch {
		case m.ended && m.res.Gap == GapNone:
			m.gap(GapCLRCut)
		case m.refused():
			m.gap(GapCLRRefused)
		}
	}
	return m.w.Step(&m.at, &m.mem, &m.guesses, &m.buf[0])
}

// entered reports whether ip is the first byte of a native function. No call returns there, so the runtime
// has replaced a return address by the address of its hijack stub. Call Hijacked only with this proof,
// because the Thread keeps the values of an earlier hijack.
func entered(t *module.Table, ip uint64) bool {
	i := t.Find(ip)
	if i < 0 {
		return false
	}
	return t.At(i).Starts(ip)
}

// entries caches results of entered: markers and callers have the same addresses in stack after stack.
type entries struct {
	table *module.Table // immutable; the reference keeps a new table from the same address
	said  [128]entryAt
}

// entryAt is the result for an IP. IP 0: unused (0 is no function's first byte either).
type entryAt struct {
	ip    uint64
	entry bool
}

func (e *entries) has(t *module.Table, ip uint64) bool {
	if e.table != t {
		e.table = t
		clear(e.said[:])
	}
	x := &e.said[(ip>>2^ip>>9)%uint64(len(e.said))]
	if x.ip != ip {
		*x = entryAt{ip, entered(t, ip)}
	}
	return x.entry
}

// fresh reports whether the last of the n frames in m.buf is new managed code: a method that the CLR knows,
// but no module of the table contains. stop is the reason why the walk of these frames ended. Such a frame
// is no longer doubtful.
func (m *Merger) fresh(n int, stop unwind.Stop) bool {
	if stop != unwind.NoInfo || n == 0 || m.buf[n-1].Module >= 0 {
		return false
	}
	id, hr := m.functions.FunctionFromIP(m.ip())
	if hr.Failed() || id == 0 {
		return false
	}
	if m.at.Trust == unwind.TrustOutside { // the CLR knows this code
		m.at.Trust = unwind.TrustCLR
	}
	return true
}

// rejudge corrects the verdict of a leaf walk, n frames long, that arrived at fresh code.
func (m *Merger) rejudge(n int) {
	switch {
	case m.res.N != 0 || m.res.Verdict != seed.Truncated: // not the leaf
	case n == 0:
		m.res.Verdict = seed.NotNeeded
	default:
		m.res.Verdict = seed.Found
	}
}
