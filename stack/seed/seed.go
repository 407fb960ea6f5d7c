// Package seed turns the CONTEXT of a suspended thread into the CONTEXT of its
// top-most managed frame: the seed, with a verdict on whether it may be used.
//
// Sources: David Broman, "Profiler stack walking: basics and beyond"; the
// behavior of .NET Core 2.0, 2.2, and .NET 10 on Windows.
//
// Glossary. A *redirect stub* is where the CLR sends a thread that it stopped in
// managed code, by changing its context. A *dispatcher* is where the kernel
// enters user mode with an exception (KiUserExceptionDispatcher). Neither is called,
// so no return address is on the stack at their first instructions. Both are
// *specials*; the caller provides their addresses. A *foreign stack* is any stack
// other than the thread's own: of a fiber, a coroutine, or a signal handler.
//
// Strategy: before the first step, refuse threads that cannot be walked. Then walk
// unmanaged frames from the captured registers until the walk reaches managed code. A
// seed is usable only if no frame above it is doubtful, every callee-saved register is
// known, and its stack pointer and ip are plausible. Then a Witness checks it against data
// that the walk did not use: the code before the return addresses, frame pointers, the
// sizes of frames, the code before the seed's ip, and the unwind data of methods. If a method's data
// are not known yet, a strict Witness refuses the seed and learns them for the next try. A seed is
// never adjusted.
//
// Known gaps: the caller must find the addresses of the specials. No witness recognizes an
// old frame whose return address the runtime had replaced. Only the Thread object names the
// true caller, and Find does not read that object. Any method can be that caller, with a
// frame of any size. The same registers and words occur on the stack of a thread that is
// hijacked now, so a rule that refuses the old frame also refuses that thread's seed. A
// witness can only require that such a frame was called, and on ARM64 that its caller has a
// frame record. An interrupted ip in managed code has one weak witness: by the unwind data
// of its method, the callers must be possible. Whether an instruction begins there depends on the code
// from the method's start, which is not known while the thread is suspended. Package snapshot
// passes such an ip only if the runtime redirected the thread after its capture. A second
// capture must then confirm all other registers, and Witness.Top the callers.
package seed

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Verdict is whether there is a seed and whether to trust it.
type Verdict uint8

const (
	NotNeeded    Verdict = iota // the interrupted ip is managed already
	Found                       // the registers are those of the top-most managed frame
	NoManaged                   // the whole stack was walked and holds no managed frame
	Unsafe                      // reached managed code over a doubtful frame, or registers are bad or unknown
	Truncated                   // the walk ended before managed code or the stack's end
	StubOnTop                   // the interrupted ip is in a special or in a stub of the CLR
	ForeignStack                // the stack pointer is not on the thread's own stack: nothing was walked
)

var verdictNames = [...]string{"not-needed", "found", "no-managed", "unsafe", "truncated",
	"stub-on-top", "foreign-stack"}

// VerdictCount is the number of Verdict values.
const VerdictCount = len(verdictNames)

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "verdict?"
}

// Usable reports whether the CLR may be given the registers.
func (v Verdict) Usable() bool { return v == NotNeeded || v == Found }

// Outcome is a verdict with its evidence.
type Outcome struct {
	Verdict Verdict
	Stop    unwind.Stop
	Frames  int  // frames written to out: the unmanaged ones, or the one in a special
	Loading bool // one of these frames is in the system's loader
}

// state is the part of a frame's registers that decides the verdict, for any architecture.
type state struct {
	ip, sp  uint64
	missing uint64 // callee-saved registers whose value is unknown
}

// rules holds the requirements of an architecture on a state.
type rules struct {
	spAlign, ipAlign uint64 // bytes, powers of two
	ipBits           uint   // of a user-space address
}

// plausible checks the values that the CLR will dereference. The stack pointer must be
// aligned and inside the stack. The ip must be a valid user-space address outside the stack.
func (a *rules) plausible(s state, b *unwind.Bounds) bool {
	return !foreign(s.sp, b) && s.sp&(a.spAlign-1) == 0 && s.sp != 0 &&
		s.ip != 0 && s.ip&(a.ipAlign-1) == 0 && s.ip>>a.ipBits == 0 &&
		(b == nil || b.High == 0 || foreign(s.ip, b))
}

// foreign reports whether sp is outside the stack. It returns false if the bounds are unknown.
func foreign(sp uint64, b *unwind.Bounds) bool {
	return b != nil && b.High != 0 && (sp < b.Low || sp >= b.High)
}

// judge returns the verdict on a finished walk from top to s.
func judge(p *managed.Specials, o *Outcome, top state, s *unwind.State, b *unwind.Bounds,
	frames []unwind.Frame) Verdict {
	a, end := &rulesOf[s.Regs.Arch], stateOf(s.Regs)
	switch {
	case o.Stop == unwind.EndOfStack:
		return NoManaged
	case o.Stop != unwind.Managed:
		return Truncated
	case (top.sp&(a.spAlign-1))|(top.ip&(a.ipAlign-1)) != 0 || !a.plausible(end, b) || s.Trust.Doubtful():
		return Unsafe
	case o.Frames == 0 && p.IsStub(end.ip):
		return StubOnTop
	case o.Frames == 0:
		return NotNeeded
	case end.missing != 0:
		return Unsafe
	}
	if misread, _ := p.Misread(frames, s.Address()); misread >= 0 {
		return Unsafe
	}
	return Found
}
