package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Functions of a PE image that its exception directory does not list are leaves, by the platform's rule: the
// return address is in x30. Assembly code may break the rule, and an image may lack the directory. So the
// code has to agree: followed over all its branches, every exit must leave SP and x30 unchanged, and it must
// not make calls.
//
// Source: Microsoft, "ARM64 exception handling", section "Overview".

// maxProof bounds the instructions of such a function: leaves are short.
const maxProof = 400

// provenLeaf reports whether the code proves that a function interrupted at pc is a leaf.
func (u *Unwinder) provenLeaf(m *module.Module, pc uint64) bool {
	f := &u.follower
	e := f.begin(m, pc)
	e.regs[regSP], e.regs[regLR] = value64{regSP, entryValue}, value64{regLR, entryValue}
	ways := 0
	for f.left = maxProof; f.n > 0; {
		f.n--
		n := u.leafPath(f.paths[f.n].pc, &f.paths[f.n].e)
		if n < 0 {
			return false
		}
		ways += n
	}
	return ways > 0
}

// maxZeroed bounds the registers that a function zeroes after its epilog: all that zeroing accepts.
const maxZeroed = 19 + 32

const plainReturn = 0xd65f03c0

// zeroes reports whether pc is at an instruction that zeroes a register after a function's epilog, or at the
// return after such instructions: the return address is in x30, and SP is the caller's. The unwind data of
// clang's -fzero-call-used-regs counts these instructions as the body.
func zeroes(m *module.Module, pc uint64) bool {
	if w, _ := codeWord(m, pc, nil); w == plainReturn {
		pc -= 4
	}
	for n := range maxZeroed {
		w, ok := codeWord(m, pc, nil)
		if !ok || !zeroing(w) {
			return w == plainReturn && n > 0
		}
		pc += 4
	}
	return false
}

// zeroing reports whether an instruction zeroes one of x0 to x18, or of the vector registers.
func zeroing(w uint32) bool { return w&^31 == 0xd2800000 && w&31 < 19 || w&^31 == 0x6f00e400 }

// leafPath follows one path of a leaf. It returns 1 at an exit, 0 if the path has none, and -1 if the
// function is not proven to be a leaf.
func (u *Unwinder) leafPath(pc uint64, from *emulator) (ways int) {
	f, e := &u.follower, *from
	for f.first(pc) {
		w, ok := codeWord(f.m, pc, nil)
		if f.left--; !ok || f.left < 0 || authenticates(w) {
			return -1
		}
		how, distance := e.run(w, nil)
		switch how {
		case flowNext:
			pc += 4
		case flowBranch:
			if f.n == maxPaths {
				return -1
			}
			f.add(pc+uint64(distance), &e)
			pc += 4
		case flowJump:
			pc += uint64(distance)
		case flowIndirect:
			// Through x16 or x17: an import, for example. Through another register, a switch may lead
			// anywhere in the function.
			if reg := w >> 5 & 31; reg != 16 && reg != 17 {
				return -1
			}
			fallthrough
		case flowReturn:
			if e.regs[regSP] != (value64{regSP, entryValue}) || e.regs[regLR] != (value64{regLR, entryValue}) {
				return -1
			}
			return 1
		case flowStop:
			return 0
		default:
			return -1
		}
	}
	return 0
}

// authenticates reports whether an instruction removes a return address's signature: before it, x30 is not a
// plain address.
func authenticates(w uint32) bool {
	return w&0xfffffbff == 0xd65f0bff || w&0xffffffbf == 0xd503239f || w&0xffffffbf == 0xd50323bf ||
		w&0xffffffbf == 0xd503219f
}

// ruled steps out of an interrupted function of a PE image by the platform's rule for leaves, although the
// code does not prove it. x30 must follow a call. The result is doubtful, unwind.TrustCode.
func (u *Unwinder) ruled(i int, s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	regs := &s.Regs.ARM64
	if i < 0 || i >= u.table.Len() || u.table.At(i).PE == nil || !s.Exact || !known(regs, regLR) {
		return false
	}
	to := *regs
	to.PC = stripPAC(regs.X[regLR])
	to.Known &= nonvolatile
	if !u.afterCall(to.PC, mem) || u.accept(&to, false, regs, b, f) != unwind.StopNone {
		return false
	}
	u.trust = unwind.TrustCode
	return true
}
