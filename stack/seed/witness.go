package seed

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// Witness checks a seed against data that the walk did not use. The zero Witness has the stack and the code
// of the modules. It is not safe for concurrent use.
type Witness struct {
	// Methods knows the unwind data of managed code; nil: nothing does.
	Methods Methods

	// Code reads the process's code; nil: nothing does. A call must precede the return address of the seed
	// and, on ARM64, that in its frame record. Code that cannot be read has no call. A read must take no lock
	// that a suspended thread can own.
	Code memory.Reader

	// Strict refuses a seed if Methods does not know every method from the seed to the root of the stack. Use
	// it where Methods is a Learner and refused samples are repeated.
	Strict bool

	// Top checks a method on top too: its callers, by Methods. Unknown ones are accepted.
	Top bool

	w    unwind.Walker
	t    *module.Table
	p    *managed.Specials
	mem  *memory.Window
	b    *unwind.Bounds
	regs context.Registers
	at   unwind.State
	out  [32]unwind.Frame

	missed bool                   // Methods did not know the code of a frame
	code   [nearcall.Longest]byte // before a return address in a method
	target [1]byte                // of a call there

	info   pearm64.Info
	packed pearm64.Buffer
}

// confirms reports whether no witness contradicts the seed s, which a walk of the thread has reached over
// frames.
func (x *Witness) confirms(w unwind.Walker, p *managed.Specials, s *unwind.State, mem *memory.Window,
	b *unwind.Bounds, frames []unwind.Frame) bool {
	x.w, x.t, x.p, x.mem, x.b = w, w.Table(), p, mem, b
	ok := s.Regs.SP() >= mem.Hot().Addr && x.called(s.Regs.Arch, frames) &&
		(s.Exact || !x.dead(s.Regs.FP(), s.Regs.SP())) && (len(frames) == 0 || x.recorded(s, frames)) &&
		x.chained(s, frames)
	x.w, x.t, x.p, x.mem, x.b = nil, nil, nil, nil, nil // the caller owns them
	return ok
}

// called reports whether all return addresses in frames follow calls, no caller has a dead frame pointer, and
// every caller's frame has room for what its prolog has allocated.
func (x *Witness) called(a context.Arch, frames []unwind.Frame) bool {
	for i := range frames {
		f := &frames[i]
		if f.Exact || f.Kind == unwind.KindSignal { // nothing calls a trampoline
			continue
		}
		if x.dead(f.FP, f.SP) {
			return false
		}
		if uint(f.Module) >= uint(x.t.Len()) {
			continue
		}
		if m := x.t.At(int(f.Module)); !followsCall(a, m, f.IP) || m.PE != nil && x.short(a, m, f) {
			return false
		}
	}
	return true
}

// dead reports whether a caller's frame pointer register points into the stack, but below the stack pointer.
// No code keeps the address of a frame that is gone.
func (x *Witness) dead(fp, sp uint64) bool {
	return x.b != nil && x.b.High != 0 && x.b.Low <= fp && fp < sp
}

// short reports whether the frame of a PE function is smaller than what the function's prolog has allocated.
// The walker can find a caller by the frame pointer alone. Such a step also succeeds if the stack pointer is
// inside the fixed part of the frame.
func (x *Witness) short(a context.Arch, m *module.Module, f *unwind.Frame) bool {
	last := f.Lookup() - m.Bias
	if f.CFA == 0 || last != uint64(uint32(last)) {
		return false
	}
	least := uint64(0)
	if a == context.ArchARM64 {
		if begin, found, fault := m.PE.ARM64().Find(uint32(last), &x.packed, &x.info); found && fault.OK() {
			least = x.info.LeastFrame(uint32(last) - begin)
		}
		x.info = pearm64.Info{} // it holds a part of the image
	} else if fn, why := m.PE.AMD64().Find(uint32(last)); why == peamd64.OK {
		least = m.PE.AMD64().LeastFrame(fn, uint32(last))
	}
	return f.CFA-f.SP < least
}

// followsCall reports whether the code of a module before an address can be a call. Absent code can.
func followsCall(a context.Arch, m *module.Module, ra uint64) bool {
	b := m.Bytes(ra-nearcall.Longest, nearcall.Longest)
	return len(b) < nearcall.Longest || endsInCall(a, b)
}

// endsInCall reports whether the last bytes of code can be a call instruction.
func endsInCall(a context.Arch, code []byte) bool {
	if a == context.ArchARM64 {
		return nearcall.ARM64(code)
	}
	return nearcall.AMD64(code)
}

// returned reports whether a call in a method can return to ra. Constants of x86-64 code often contain the
// first byte of a relative call, but a true call has a target.
func (x *Witness) returned(a context.Arch, ra uint64) bool {
	if x.Code == nil {
		return true
	}
	code := x.code[:]
	if ra&(rulesOf[a].ipAlign-1) != 0 || !x.Code.ReadAt(code, ra-nearcall.Longest) {
		return false
	}
	to, relative := nearcall.Relative(code, ra)
	if relative && a == context.ArchAMD64 && !x.Code.ReadAt(x.target[:], to) {
		code[len(code)-nearcall.RelativeSize] = 0 // another call can contain this byte
	}
	return endsInCall(a, code)
}

// place is what a return address of managed code points to.
type place uint8

const (
	nowhere place = iota // nothing that managed code returns to
	inManaged
	afterCall // in unmanaged code
	atHook    // a function's first byte: the runtime replaces return addresses by that of its hijack stub
)

// returnsTo returns what a return address of managed code points to.
func (x *Witness) returnsTo(a context.Arch, ra uint64) place {
	last := unwind.ReturnAddress(ra).Lookup()
	if x.t.IsManaged(last) {
		return inManaged
	}
	i := x.t.Find(last)
	switch {
	case i >= 0 && followsCall(a, x.t.At(i), ra), i < 0 && x.t.IsJIT(last):
		return afterCall
	case i < 0 && x.p != nil && x.p.IsMethod != nil && x.p.IsMethod(last): // newer than the table
		return inManaged
	}
	if i = x.t.Find(ra); i >= 0 && x.t.At(i).Starts(ra) {
		return atHook
	}
	return nowhere
}

// longestFrame bounds the part of a managed frame that is searched, in bytes.
const longestFrame = 4096

// recorded reports whether the stack agrees with the frame record of an ARM64 seed.
//
// The link register can be a true return address in a function that has not been called from there. If the
// topmost function has its return address in that register, the address is not on the stack up to the record.
// Otherwise another function has saved it, and the walk has missed that function's frame.
func (x *Witness) recorded(s *unwind.State, frames []unwind.Frame) bool {
	sp, record := s.Regs.SP(), s.Regs.FP()
	inRegister := s.Regs.Arch == context.ArchARM64 && len(frames) == 1 && frames[0].SP == sp
	for at := sp; inRegister && at < min(record+16, sp+longestFrame); at += 8 {
		if v, ok := x.mem.Word(at); ok && v == s.Regs.IP() {
			return false
		}
	}
	return x.hasRecord(s.Regs)
}

// hasRecord reports whether the registers of an ARM64 method point to its frame record. Every method has one
// at or above its stack pointer, x29 points to it, and it contains a return address.
func (x *Witness) hasRecord(r *context.Registers) bool {
	if r.Arch != context.ArchARM64 {
		return true
	}
	if !x.canPoint(r.FP(), r.SP()) {
		return false
	}
	ra, ok := x.mem.Word(r.FP() + 8)
	ra &= 1<<rulesOf[context.ArchARM64].ipBits - 1 // it may be signed
	if !ok {
		return true
	}
	to := x.returnsTo(r.Arch, ra)
	return to != nowhere && (to != inManaged || x.returned(r.Arch, ra))
}

// canPoint reports whether a frame pointer can be the address of a record at or above sp.
func (x *Witness) canPoint(fp, sp uint64) bool { return fp >= sp && fp&7 == 0 && !foreign(fp, x.b) }
