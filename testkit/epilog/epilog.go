// Package epilog runs the rest of an x64 epilog instruction by instruction, as
// the processor would: a third opinion for tests where two unwinders differ. It
// shares nothing with the unwinder but the reader of images.
//
// Source: Microsoft, "x64 exception handling", epilog code; instructions are
// decoded by golang.org/x/arch.
package epilog

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// End is how the rest of an epilog ends.
type End uint8

const (
	None End = iota // it is no epilog
	Ret
	RetImm
	JumpRel
	JumpMem // RIP-relative, as through an import
	JumpAny // through a register, or through memory at one
)

// Rest is the rest of an epilog, run by the processor's rules.
type Rest struct {
	End    End
	BND    bool
	REX    bool       // the last instruction has a REX prefix
	Wide   bool       // with W
	Base   x86asm.Reg // of lea rsp, [base+disp]; 0 = none
	Regs   context.AMD64
	Imm    uint64 // operand of RetImm: bytes that it pops after the return address
	Target uint32 // RVA of the target of JumpRel
}

// Run runs the instructions of f from rva on until the epilog ends. Regs are then the
// caller's. If End is None, the code is no epilog, and Regs mean nothing.
func Run(f *pe.File, rva uint32, regs *context.AMD64, mem *memory.Window) (e Rest) {
	e.Regs = *regs
	for n := range 40 {
		in, err := x86asm.Decode(f.Tail(rva, 16), 64)
		if err != nil {
			return e
		}
		rva += uint32(in.Len)
		switch {
		case in.Op == x86asm.POP && in.MemBytes == 0:
			r, ok := in.Args[0].(x86asm.Reg)
			if !ok || r < x86asm.RAX || r > x86asm.R15 || !e.pop(&e.Regs.GPR[r-x86asm.RAX], mem) {
				return e
			}
		case n == 0 && e.adjust(&in):
		default:
			e.finish(&in, rva, mem)
			return e
		}
	}
	return e
}

func (e *Rest) pop(to *uint64, mem *memory.Window) bool {
	v, ok := mem.Word(e.Regs.GPR[context.RSP])
	e.Regs.GPR[context.RSP] += 8
	*to = v
	return ok
}

// adjust runs add rsp, imm and lea rsp, [base+disp].
func (e *Rest) adjust(in *x86asm.Inst) bool {
	if in.Args[0] != x86asm.RSP {
		return false
	}
	sp := &e.Regs.GPR[context.RSP]
	switch imm, isImm := in.Args[1].(x86asm.Imm); {
	case in.Op == x86asm.ADD && isImm:
		*sp += uint64(imm)
		return true
	case in.Op == x86asm.LEA:
		m := in.Args[1].(x86asm.Mem)
		if m.Index != 0 || m.Base < x86asm.RAX || m.Base > x86asm.R15 {
			return false
		}
		e.Base = m.Base
		*sp = e.Regs.GPR[m.Base-x86asm.RAX] + uint64(m.Disp)
		return true
	}
	return false
}

// finish runs the instruction that leaves the function: it pops the return address, also
// for a jump, whose target returns to it. next is the RVA after the instruction.
func (e *Rest) finish(in *x86asm.Inst, next uint32, mem *memory.Window) {
	end := None
	for _, p := range in.Prefix {
		e.BND = e.BND || p&0xff == 0xf2
		e.REX = e.REX || p.IsREX()
		e.Wide = e.Wide || p.IsREX() && p&x86asm.PrefixREXW&0xff == x86asm.PrefixREXW&0xff
	}
	switch a := in.Args[0].(type) {
	case nil:
		if in.Op == x86asm.RET {
			end = Ret
		}
	case x86asm.Imm:
		if in.Op == x86asm.RET {
			end, e.Imm = RetImm, uint64(a)
		}
	case x86asm.Rel:
		if in.Op == x86asm.JMP {
			end, e.Target = JumpRel, next+uint32(int32(a))
		}
	case x86asm.Mem:
		if in.Op == x86asm.JMP && a.Base == x86asm.RIP {
			end = JumpMem
		} else if in.Op == x86asm.JMP {
			end = JumpAny
		}
	case x86asm.Reg:
		if in.Op == x86asm.JMP {
			end = JumpAny
		}
	}
	if end != None && e.pop(&e.Regs.RIP, mem) {
		e.End = end
	}
}

// Site is a place in a function, and the rest of the epilog from there.
type Site struct {
	Rest
	File *pe.File
	RVA  uint32
	Fn   peamd64.RuntimeFunction
	Info peamd64.Info
}

// At runs the code at a place, see Run.
func At(f *pe.File, rva uint32, regs *context.AMD64, mem *memory.Window) Site {
	s := Site{Rest: Run(f, rva, regs, mem), File: f, RVA: rva}
	s.Fn, _ = f.AMD64().Find(rva)
	s.Info, _ = f.AMD64().Info(s.Fn.Unwind)
	return s
}

// Leaves reports whether the epilog ends in a jump out of the function. A jump into the middle of another
// function does not count: the target is a part of the same function that is not chained. A jump to the
// function's own first byte is a tail call of itself.
func (s *Site) Leaves() bool {
	switch s.End {
	case JumpMem:
		return true
	case JumpAny:
		return s.Wide
	case JumpRel:
		if s.Fn.Contains(s.Target) {
			return s.Target == s.Fn.Begin && !s.Info.Chained()
		}
		return !inMiddle(s.File, s.Target)
	}
	return false
}

// Ends reports whether a return or a jump out of the function ends the rest.
func (s *Site) Ends() bool { return s.End == Ret || s.End == RetImm || s.Leaves() }

// WineFault returns the name of the fault that keeps RtlVirtualUnwind of Wine 8.0 from taking the rest for
// an epilog. It returns "" if Wine is right. Microsoft's "x64 exception handling" and the CLR's
// unwinder.cpp, which follows Windows, define what an epilog is.
func (s *Site) WineFault() string {
	switch {
	case s.Info.Version != 1 || !s.Ends():
		return ""
	case s.RVA-s.Fn.Begin < uint32(s.Info.Prolog):
		// Wine looks for epilogs only behind the prolog. Windows does so first and everywhere: a function
		// may return before all of its registers are saved.
		return "epilog inside the prolog"
	case s.Leaves():
		// For Wine, only a return ends an epilog. A jump out of the function does too: a relative one, one
		// through memory, or one through a register with REX.W.
		return "tail jump"
	case s.Info.Count == 0:
		// Wine does not look for epilogs of entries without codes. Its comment says that Windows has not
		// done so since version 1809. The CLR's unwinder does. If the entry is not chained, only the handler
		// differs.
		return "epilog of an entry without codes"
	case s.End == Ret && s.BND: // Wine does not know the F2 prefix of a return
		return "bnd ret"
	}
	return ""
}

// inMiddle reports whether rva lies in a function, but not at its first byte.
func inMiddle(f *pe.File, rva uint32) bool {
	other, why := f.AMD64().Find(rva)
	if why != peamd64.OK {
		return false
	}
	first, _ := f.AMD64().Primary(other)
	return rva != first.Begin
}
