package merge

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// ManagedOf steps over managed code by the runtime's own unwind data; R is an
// architecture's registers. It is clr/contract's Tables, behind an interface so
// that a merge runs without them.
type ManagedOf[R any] interface {
	// StepManaged replaces regs by the caller's registers and says how sure
	// they are. If stop is not StopNone, regs is unchanged.
	StepManaged(regs *R, exact bool, mem *memory.Window, f *unwind.Frame) (trust unwind.Trust, stop unwind.Stop)
	// Hijacked gives the true return address that the runtime has replaced
	// in a stack slot of a thread.
	Hijacked(thread, slot uint64) (ra uint64, ok bool)
}

// Managed is the interface for x86-64, ManagedARM64 for ARM64.
type (
	Managed      = ManagedOf[context.AMD64]
	ManagedARM64 = ManagedOf[context.ARM64]
)

// SetManaged makes the merges to come step over hidden managed frames by c
// rather than by a guess; nil takes it away. It has no effect on a merger of
// ARM64 stacks.
func (m *Merger) SetManaged(c Managed) {
	if a, ok := m.cpu.(*amd64Machine); ok {
		a.contract, m.lent = c, c != nil
	}
}

// SetManagedARM64 is SetManaged for a merger of ARM64 stacks.
func (m *Merger) SetManagedARM64(c ManagedARM64) {
	if a, ok := m.cpu.(*arm64Machine); ok {
		a.contract, m.lent = c, c != nil
	}
}

// refused reports whether the CLR's refusal leaves managed frames to a guess.
func (m *Merger) refused() bool {
	return m.in.Result.Failed() && m.res.Gap == GapNone && m.nextManaged() < 0
}

// over steps over the managed frame or stub the merge stands at: by the
// runtime's tables if they know it, else by a guess.
func (m *Merger) over() unwind.Stop {
	f := &m.buf[0] // what a call through an interface takes must not be allocated
	if m.lent {
		// Each such step goes up the stack, so that their number needs no bound.
		if trust, ok := m.cpu.sure(uint64(m.in.Thread.ID), m.exact, &m.mem, &m.bounds, f); ok {
			m.exact, m.trust = false, trust
			return unwind.StopNone
		}
		if m.refused() {
			m.gap(GapCLRRefused)
		}
	}
	if m.hidden++; m.hidden > maxHidden {
		return unwind.Limit
	}
	exact, trust, stop := m.cpu.step(m.exact, &m.mem, &m.guesses, f)
	if stop == unwind.StopNone {
		m.exact, m.trust = exact, trust
	}
	return stop
}

// entered reports whether ip is the first byte of a native function. No call
// returns there: the runtime has put the address of its hijack stub in place of
// a return address. What the Thread says of the slot must not be asked without
// this proof, since it keeps what it said of an earlier hijack.
func entered(t *module.Table, ip uint64) bool {
	i := t.Find(ip)
	if i < 0 {
		return false
	}
	m := t.At(i)
	pc := ip - m.Bias
	switch {
	case m.CFI != nil:
		fde, _ := m.CFI.Find(pc) // empty if there is none
		return fde.Lo == pc && fde.Hi > pc
	case m.PE != nil && pc == uint64(uint32(pc)):
		return m.PE.AMD64().Starts(uint32(pc)) || m.PE.ARM64().Starts(uint32(pc))
	}
	return false
}

// fresh reports whether the last of n frames, for which a walk had no unwind
// data, is a method whose code was mapped after the module table was made.
func (m *Merger) fresh(n int, stop unwind.Stop) bool {
	if stop != unwind.NoInfo || n == 0 || m.buf[n-1].Module >= 0 {
		return false
	}
	id, hr := m.functions.FunctionFromIP(m.ip)
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
