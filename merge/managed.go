package merge

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Managed steps over managed code by the runtime's own unwind data. It is
// clr/contract's Tables, behind an interface so that a merge runs without them.
type Managed interface {
	// StepManaged replaces regs by the caller's registers and says how sure
	// they are. If stop is not StopNone, regs is unchanged.
	StepManaged(regs *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (trust unwind.Trust, stop unwind.Stop)
	// Hijacked gives the true return address that the runtime has replaced
	// in a stack slot of a thread.
	Hijacked(thread, slot uint64) (ra uint64, ok bool)
}

// SetManaged makes the merges to come step over hidden managed frames by c
// rather than by a guess; nil takes it away.
func (m *Merger) SetManaged(c Managed) { m.contract = c }

// refused reports whether the CLR's refusal leaves managed frames to a guess.
func (m *Merger) refused() bool {
	return m.in.Result.Failed() && m.res.Gap == GapNone && m.nextManaged() < 0
}

// over steps over the managed frame or stub the merge stands at: by the
// runtime's tables if they know it, else by a guess.
func (m *Merger) over() unwind.Stop {
	f := &m.buf[0] // what a call through an interface takes must not be allocated
	if m.contract != nil {
		if m.sure(f) {
			return unwind.StopNone
		}
		if m.refused() {
			m.gap(GapCLRRefused)
		}
	}
	if m.hidden++; m.hidden > maxHidden {
		return unwind.Limit
	}
	b := m.bounds
	b.Guess = true
	exact, stop := m.u.Step(&m.regs, m.exact, &m.mem, &b, f)
	if stop == unwind.StopNone {
		m.exact, m.trust = exact, m.u.StepTrust()
	}
	return stop
}

// sure steps by the runtime's tables. Each such step goes up the stack, so that
// the number of them needs no bound.
func (m *Merger) sure(f *unwind.Frame) bool {
	to := &m.to
	*to = m.regs
	trust, stop := m.contract.StepManaged(to, m.exact, &m.mem, f)
	if stop != unwind.StopNone || to.SP() <= m.regs.SP() || m.bounds.High != 0 && to.SP() > m.bounds.High {
		return false
	}
	if m.entered(to.RIP) {
		if ra, ok := m.contract.Hijacked(uint64(m.in.Thread.ID), to.SP()-8); ok {
			to.RIP = ra
		}
	}
	m.regs, m.exact, m.trust = *to, false, trust
	return true
}

// entered reports whether ip is the first byte of a native function. No call
// returns there: the runtime has put the address of its hijack stub in place of
// a return address. What the Thread says of the slot must not be asked without
// this proof, since it keeps what it said of an earlier hijack.
func (m *Merger) entered(ip uint64) bool {
	t := m.u.Table()
	i := t.Find(ip)
	if i < 0 || t.At(i).CFI == nil {
		return false
	}
	pc := ip - t.At(i).Bias
	fde, _ := t.At(i).CFI.Find(pc) // empty if there is none
	return fde.Lo == pc && fde.Hi > pc
}

// fresh reports whether the last of n frames, for which a walk had no unwind
// data, is a method whose code was mapped after the module table was made.
func (m *Merger) fresh(n int, stop unwind.Stop) bool {
	if stop != unwind.NoInfo || n == 0 || m.buf[n-1].Module >= 0 {
		return false
	}
	id, hr := m.functions.FunctionFromIP(m.regs.RIP)
	return !hr.Failed() && id != 0
}

// rejudge corrects the verdict of a leaf walk, n frames long, that arrived at
// fresh code.
func (m *Merger) rejudge(n int) {
	switch {
	case m.res.N != 0 || m.res.Verdict != seed.Truncated: // not the leaf
	case n == 0:
		m.res.Verdict = seed.NotNeeded
	default:
		m.res.Verdict = seed.Found
	}
}
