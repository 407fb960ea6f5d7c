package wineunwind

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/pe"
)

// question is a point whose answers differ.
type question struct {
	f          *pe.File
	p          *point
	fn         pe.RuntimeFunction
	info       pe.AMD64Info
	ours, wine *answer
	mem        *memory.Window
	rest       epilog
	class      int // what explains it, -1 = nothing
}

func newQuestion(f *pe.File, p *point, ours, wine *answer, mem *memory.Window) *question {
	q := &question{f: f, p: p, ours: ours, wine: wine, mem: mem}
	q.fn, _ = f.FindAMD64(p.rva)
	q.info, _ = f.AMD64Info(q.fn.Unwind)
	q.rest = runRest(f, p, mem)
	return q
}

// class is a known fault of Wine 8: a condition as narrow as its cause, and what
// says that our answer is right.
type class struct {
	name string
	// elsewhere: Wine takes what is no epilog for one. Asked in the same
	// function's body with the same registers it must give our answer.
	elsewhere bool
	match     func(q *question) bool
}

// classes are tried in this order. What an epilog is say Microsoft's "x64
// exception handling", "epilog code", and unwinder.cpp, which follows Windows;
// what Wine does say is_inside_epilog and RtlVirtualUnwind of 8.0.
var classes = [...]class{
	// Wine looks for epilogs only behind the prolog. Windows does so first and
	// everywhere: a function may return before all of its registers are saved.
	{"epilog inside the prolog", false, func(q *question) bool {
		return q.info.Version == 1 && q.p.rva-q.fn.Begin < uint32(q.info.Prolog) && q.ends() && q.right()
	}},
	// Only a return ends an epilog for Wine. A jump out of the function does, too:
	// relative, through memory, or, with REX.W, through a register.
	{"tail jump", false, func(q *question) bool {
		return q.info.Version == 1 && q.leaves() && q.right()
	}},
	// Wine does not look for epilogs of entries without codes; by its comment
	// Windows has not done so either since its version 1809. The CLR's unwinder
	// does. Of entries that are not chained it shows in the handler alone.
	{"epilog of an entry without codes", false, func(q *question) bool {
		return q.info.Version == 1 && q.info.Count == 0 && q.ends() && q.right()
	}},
	// Wine does not know the F2 prefix of a return.
	{"bnd ret", false, func(q *question) bool {
		return q.info.Version == 1 && q.rest.end == ret && q.rest.bnd && q.right()
	}},
	// Wine takes away the arguments, too; to Windows they are the caller's matter.
	{"ret imm16", false, func(q *question) bool {
		theirs := *q.wine
		theirs.regs.GPR[context.RSP] -= q.rest.imm
		return q.rest.end == retImm && !q.rest.rex && q.right() && differ(q.ours, &theirs) == ""
	}},
	// With R12 as its base lea has a SIB byte. Wine takes that for no epilog;
	// unwinder.cpp does not count the byte and so mostly goes by the codes, too.
	// Both come to the same when the function really runs, and so do we.
	{"lea from R12", false, func(q *question) bool {
		return q.info.Version == 1 && q.rest.base == x86asm.R12 && q.info.FrameReg == context.R12 && q.ends() && q.right()
	}},
	// Wine skips any REX prefix before a return, Windows knows none there: the
	// bytes are another instruction's middle.
	{"ret with a REX prefix", true, func(q *question) bool {
		return (q.rest.end == ret || q.rest.end == retImm) && q.rest.rex && !q.right()
	}},
	// Wine looks on behind a jump that stays in the function. For Windows such a
	// jump ends no epilog: the function is left by its codes, which of one with a
	// frame register need not give the same if RSP is elsewhere.
	{"jump inside the function to an epilog", true, func(q *question) bool {
		return q.rest.end == jumpRel && q.fn.Contains(q.rest.target) && !q.leaves() && !q.right()
	}},
	// The CLR's compiler makes functions with a frame register their unwind
	// information does not name. Windows takes a lea from such a register for no
	// epilog; Wine does, and so names no handler.
	{"lea from an undeclared register", true, func(q *question) bool {
		theirs := *q.wine
		theirs.handler = q.ours.handler
		return q.rest.base != 0 && q.rest.base != x86asm.RAX+x86asm.Reg(q.info.FrameReg) && q.ends() &&
			q.wine.handler == 0 && differ(q.ours, &theirs) == ""
	}},
}

// ends tells whether a return or a jump out of the function ends the rest.
func (q *question) ends() bool { return q.rest.end == ret || q.rest.end == retImm || q.leaves() }

// epilog tells whether the rest is an epilog that Windows takes for one.
func (q *question) epilog() bool {
	declared := q.rest.base == 0 || q.info.FrameReg != 0 && q.rest.base == x86asm.RAX+x86asm.Reg(q.info.FrameReg)
	return q.ours.how == entry && q.info.Version == 1 && declared && q.ends() && (q.leaves() || !q.rest.rex)
}

// right tells whether our answer is the epilog's, run to its end. Inside it no
// handler is in charge.
func (q *question) right() bool {
	a := answer{regs: q.rest.regs, begin: q.ours.begin, frame: q.wine.frame}
	return differ(q.ours, &a) == ""
}

// leaves tells whether the epilog's rest ends in a jump out of the function.
func (q *question) leaves() bool {
	switch q.rest.end {
	case jumpMem:
		return true
	case jumpAny:
		return q.rest.wide
	case jumpRel:
		if q.fn.Contains(q.rest.target) {
			return q.rest.target == q.fn.Begin && !q.info.Chained()
		}
		return !q.sameFunction(q.rest.target)
	}
	return false
}

// sameFunction tells whether rva lies in another fragment of the function, but
// not at its first byte.
func (q *question) sameFunction(rva uint32) bool {
	other, why := q.f.FindAMD64(rva)
	if why != pe.OK {
		return false
	}
	mine, _ := q.f.PrimaryAMD64(q.fn)
	theirs, _ := q.f.PrimaryAMD64(other)
	return mine == theirs && rva != mine.Begin
}

// explain gives the index of the class that explains a difference, -1 if none.
func (q *question) explain() int {
	for i := range classes {
		if classes[i].match(q) {
			return i
		}
	}
	return -1
}

// elsewhere gives the question again, in the body of the function: at the first
// instruction behind the prolog that cannot belong to an epilog.
func (q *question) elsewhere() (p point, ok bool) {
	at := q.fn.Begin + uint32(q.info.Prolog)
	if at >= q.fn.End {
		return p, false
	}
	for _, in := range sweep(q.f.Tail(at, int(min(q.fn.End-at, maxSweep))), at) {
		switch in.Op {
		case 0, x86asm.RET, x86asm.JMP, x86asm.POP, x86asm.ADD, x86asm.LEA:
		default:
			return point{in.rva, q.p.regs}, true
		}
	}
	return p, false
}

// ending is how the rest of an epilog ends.
type ending uint8

const (
	noEpilog ending = iota
	ret
	retImm
	jumpRel
	jumpMem // RIP-relative: an import's
	jumpAny // through a register, or memory it points to
)

// epilog is the rest of one, run by the processor's rules.
type epilog struct {
	end    ending
	bnd    bool
	rex    bool       // the last instruction has a REX prefix
	wide   bool       // with W
	base   x86asm.Reg // of lea rsp, [base+disp]; 0 = none
	regs   context.AMD64
	imm    uint64 // bytes a ret takes away
	target uint32 // RVA of a relative jump's
}

// runRest runs instructions from p on as long as they are of an epilog.
func runRest(f *pe.File, p *point, mem *memory.Window) (e epilog) {
	e.regs = p.regs
	rva := p.rva
	for n := range 40 {
		in, err := x86asm.Decode(f.Tail(rva, 16), 64)
		if err != nil {
			return e
		}
		rva += uint32(in.Len)
		switch {
		case in.Op == x86asm.POP && in.MemBytes == 0:
			r, ok := in.Args[0].(x86asm.Reg)
			if !ok || r < x86asm.RAX || r > x86asm.R15 || !e.pop(&e.regs.GPR[r-x86asm.RAX], mem) {
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

func (e *epilog) pop(to *uint64, mem *memory.Window) bool {
	v, ok := mem.Word(e.regs.GPR[context.RSP])
	e.regs.GPR[context.RSP] += 8
	*to = v
	return ok
}

// adjust runs add rsp, imm and lea rsp, [base+disp].
func (e *epilog) adjust(in *x86asm.Inst) bool {
	if in.Args[0] != x86asm.RSP {
		return false
	}
	sp := &e.regs.GPR[context.RSP]
	switch imm, isImm := in.Args[1].(x86asm.Imm); {
	case in.Op == x86asm.ADD && isImm:
		*sp += uint64(imm)
		return true
	case in.Op == x86asm.LEA:
		m := in.Args[1].(x86asm.Mem)
		if m.Index != 0 || m.Base < x86asm.RAX || m.Base > x86asm.R15 {
			return false
		}
		e.base = m.Base
		*sp = e.regs.GPR[m.Base-x86asm.RAX] + uint64(m.Disp)
		return true
	}
	return false
}

// finish takes the instruction that leaves the function; next is the RVA behind
// it. Whoever is jumped to finds the return address on the stack.
func (e *epilog) finish(in *x86asm.Inst, next uint32, mem *memory.Window) {
	end := noEpilog
	for _, p := range in.Prefix {
		e.bnd = e.bnd || p&0xff == 0xf2
		e.rex = e.rex || p.IsREX()
		e.wide = e.wide || p.IsREX() && p&x86asm.PrefixREXW&0xff == x86asm.PrefixREXW&0xff
	}
	switch a := in.Args[0].(type) {
	case nil:
		if in.Op == x86asm.RET {
			end = ret
		}
	case x86asm.Imm:
		if in.Op == x86asm.RET {
			end, e.imm = retImm, uint64(a)
		}
	case x86asm.Rel:
		if in.Op == x86asm.JMP {
			end, e.target = jumpRel, next+uint32(int32(a))
		}
	case x86asm.Mem:
		if in.Op == x86asm.JMP && a.Base == x86asm.RIP {
			end = jumpMem
		} else if in.Op == x86asm.JMP {
			end = jumpAny
		}
	case x86asm.Reg:
		if in.Op == x86asm.JMP {
			end = jumpAny
		}
	}
	if end != noEpilog && e.pop(&e.regs.RIP, mem) {
		e.end = end
	}
}

// place shows a function around an address, for a human.
func place(f *pe.File, rva uint32) string {
	fn, why := f.FindAMD64(rva)
	info, fault := f.AMD64Info(fn.Unwind)
	var b strings.Builder
	fmt.Fprintf(&b, "%#x in %#x-%#x (%v) version %d, prolog %d, %d slots, frame register %d, flags %d (%v):", rva, fn.Begin, fn.End, why,
		info.Version, info.Prolog, info.Count, info.FrameReg, info.Flags, fault.Reason)
	fmt.Fprintf(&b, " % x:", f.Tail(rva, 8))
	for n, in := range sweep(f.Tail(rva, 48), rva) {
		if n == 6 {
			break
		}
		fmt.Fprintf(&b, " %s;", strings.ToLower(x86asm.IntelSyntax(in.Inst, uint64(in.rva), nil)))
	}
	return b.String()
}
