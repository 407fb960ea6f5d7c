package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// tables replaces package clr/contract in a world: the runtime's own unwind data of managed
// code on x86-64, and the original return address that a thread keeps for a hijacked
// one. That address may be stale.
type tables struct{ w *World }

var _ merge.Managed = tables{}

// Managed returns the runtime's tables of the world.
func (w *World) Managed() merge.Managed { return tables{w} }

// code reads the images of a world.
type code struct{ *Kit }

var _ memory.Reader = code{}

// ReadAt implements memory.Reader.
func (c code) ReadAt(p []byte, addr uint64) bool {
	for _, im := range [...]*image.Image{c.Code, c.CLR, c.App, c.System} {
		if off := addr - im.Base; off < uint64(len(im.File)) {
			return copy(p, im.File[off:]) == len(p)
		}
	}
	return false
}

// preservedAMD64 is the part of Known that stays known across a call.
func (t tables) preservedAMD64() (known uint32) {
	for _, r := range t.w.Host.preserved() {
		known |= 1 << r
	}
	if t.w.Format() == image.PE {
		known |= 0x3ff << 16
	}
	return known
}

// endsInCall reports whether code ends in a call.
func endsInCall(a image.Arch, code []byte) bool {
	if a == image.ARM64 {
		return nearcall.ARM64(code)
	}
	return nearcall.AMD64(code)
}

// LeastFrame is the size of fn's frame at ip in bytes, without dynamic allocations. It is 0 in a prolog and
// in an epilog.
func LeastFrame(a image.Arch, im *image.Image, fn *image.Func, ip uint64) (n uint64) {
	at := fn.At(uint32(ip-im.Base) - fn.RVA)
	if at < 0 || fn.Ops[at].Part != image.Body {
		return 0
	}
	for i := range fn.Ops[:at] {
		for _, e := range fn.Ops[i].Effects {
			grows := e.Kind == image.Add && e.Reg == a.SP() || e.Kind == image.Set
			if grows && e.Imm < 0 && fn.Ops[i].Part == image.Prolog {
				n += uint64(-e.Imm)
			}
		}
	}
	if a == image.AMD64 {
		n += 8 // the return address
	}
	return n
}

// ByFramePointer raises the stack pointer of a frame of fn to where the function's prolog has left it, if the
// function has a frame pointer. Its unwind data find the caller by that register, since the function may have
// allocated memory below. They do not say whether it has. The data that count are of the op that is back
// ops before the program counter: in unmanaged code the call, which is 1 op before.
func ByFramePointer(a image.Arch, im *image.Image, fn *image.Func, st *machine.State, back int) {
	at := fn.At(uint32(st.PC-im.Base)-fn.RVA) - back
	if at < 0 || fn.Ops[at].Part != image.Body {
		return
	}
	set, above := false, int64(0) // the frame pointer is that many bytes above the stack pointer
	for i := range fn.Ops[:at] {
		for _, e := range fn.Ops[i].Effects {
			switch {
			case e.Kind != image.Add || e.Base != a.SP() || fn.Ops[i].Part != image.Prolog:
			case e.Reg == a.FP():
				set, above = true, e.Imm
			case e.Reg == a.SP():
				above -= e.Imm
			}
		}
	}
	if left := st.R[a.FP()] - uint64(above); set && st.R[a.SP()] < left {
		st.R[a.SP()] = left
	}
}

// Caller implements seed.Methods: the code of all methods is known.
func (t tables) Caller(s *unwind.State, mem *memory.Window, _ *unwind.Bounds) unwind.Stop {
	at, a := s.Address(), t.w.Arch
	im, fn := t.w.CLR.Codes.Find(at.Lookup())
	if fn == nil {
		return unwind.NoInfo
	}
	st := machine.FromRegisters(s.Regs)
	if !at.Exact && !endsInCall(a, im.File[:at.IP-im.Base]) {
		return unwind.BadInfo
	}
	sp := st.R[a.SP()]
	ByFramePointer(a, im, fn, &st, 0)
	if _, ok := machine.StepRow(a, im, fn, &st, mem.Word); !ok {
		return unwind.Unreadable
	}
	if st.R[a.SP()]-sp < LeastFrame(a, im, fn, at.IP) {
		return unwind.NoProgress
	}
	*s.Regs = st.Registers(a)
	s.Reached(false, unwind.TrustUnwindInfo)
	return unwind.StopNone
}

// learner is a seed.Learner: it knows the code at the return addresses that Caller has missed before.
type learner struct {
	tables
	known  map[uint64]bool
	missed uint64
}

var _ seed.Learner = (*learner)(nil)

// Caller implements seed.Methods.
func (l *learner) Caller(s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	if at := s.Address(); !l.known[at.IP] && !at.Exact {
		l.missed = at.IP
		return unwind.NoInfo
	}
	return l.tables.Caller(s, mem, b)
}

// LearnMissed implements seed.Learner.
func (l *learner) LearnMissed() bool {
	_, fn := l.w.CLR.Codes.Find(l.missed - 1)
	l.known[l.missed] = true
	return fn != nil
}

// Step implements merge.Managed.
func (t tables) Step(s *unwind.State, mem *memory.Window, _ *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	regs := &s.Regs.AMD64
	*f = unwind.Frame{IP: regs.RIP, SP: regs.SP(), FP: regs.FP(), Module: -1, Kind: unwind.KindManaged,
		Exact: s.Exact, Trust: s.Trust}
	im, fn := t.w.CLR.Codes.Find(s.Address().Lookup())
	if fn == nil {
		return unwind.NoInfo
	}
	st := machine.FromAMD64(regs)
	if _, ok := machine.StepRow(image.AMD64, im, fn, &st, mem.Word); !ok {
		return unwind.Unreadable
	}
	known := regs.Known & t.preservedAMD64()
	*regs = st.AMD64()
	regs.Known = known | 1<<context.RSP
	f.CFA = regs.SP()
	s.Reached(false, unwind.TrustUnwindInfo)
	return unwind.StopNone
}

// Hijacked implements merge.Managed.
func (t tables) Hijacked(thread, slot uint64) (ra uint64, ok bool) {
	if th := t.w.CLR.Thread(clr.ThreadID(thread)); th != nil {
		return th.Hijacked(slot)
	}
	return 0, false
}
