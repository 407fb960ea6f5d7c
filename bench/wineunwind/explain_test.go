package wineunwind

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/epilog"
)

// question is a point whose answers differ.
type question struct {
	f          *pe.File
	p          *point
	fn         peamd64.RuntimeFunction
	info       peamd64.Info
	ours, wine *answer
	mem        *memory.Window
	rest       epilog.Rest
	class      int // what explains it, -1 = nothing
}

func newQuestion(f *pe.File, p *point, ours, wine *answer, mem *memory.Window) *question {
	q := &question{f: f, p: p, ours: ours, wine: wine, mem: mem}
	q.fn, _ = f.AMD64().Find(p.rva)
	q.info, _ = f.AMD64().Info(q.fn.Unwind)
	q.rest = epilog.Run(f, p.rva, &p.regs, mem)
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
		return q.info.Version == 1 && q.rest.End == epilog.Ret && q.rest.BND && q.right()
	}},
	// Wine takes away the arguments, too; to Windows they are the caller's matter.
	{"ret imm16", false, func(q *question) bool {
		theirs := *q.wine
		theirs.regs.GPR[context.RSP] -= q.rest.Imm
		return q.rest.End == epilog.RetImm && !q.rest.REX && q.right() && differ(q.ours, &theirs) == ""
	}},
	// With R12 as its base lea has a SIB byte. Wine takes that for no epilog;
	// unwinder.cpp does not count the byte and so mostly goes by the codes, too.
	// Both come to the same when the function really runs, and so do we.
	{"lea from R12", false, func(q *question) bool {
		return q.info.Version == 1 && q.rest.Base == x86asm.R12 && q.info.FrameReg == context.R12 &&
			q.ends() && q.right()
	}},
	// Wine skips any REX prefix before a return, Windows knows none there: the
	// bytes are another instruction's middle.
	{"ret with a REX prefix", true, func(q *question) bool {
		return (q.rest.End == epilog.Ret || q.rest.End == epilog.RetImm) && q.rest.REX && !q.right()
	}},
	// Wine looks on behind a jump that stays in the function. For Windows such a
	// jump ends no epilog: the function is left by its codes, which of one with a
	// frame register need not give the same if RSP is elsewhere.
	{"jump inside the function to an epilog", true, func(q *question) bool {
		return q.rest.End == epilog.JumpRel && q.fn.Contains(q.rest.Target) && !q.leaves() && !q.right()
	}},
	// The CLR's compiler makes functions with a frame register their unwind
	// information does not name. Windows takes a lea from such a register for no
	// epilog; Wine does, and so names no handler.
	{"lea from an undeclared register", true, func(q *question) bool {
		theirs := *q.wine
		theirs.handler = q.ours.handler
		return q.rest.Base != 0 && q.rest.Base != x86asm.RAX+x86asm.Reg(q.info.FrameReg) && q.ends() &&
			q.wine.handler == 0 && differ(q.ours, &theirs) == ""
	}},
}

// ends tells whether a return or a jump out of the function ends the rest.
func (q *question) ends() bool {
	return q.rest.End == epilog.Ret || q.rest.End == epilog.RetImm || q.leaves()
}

// epilog tells whether the rest is an epilog that Windows takes for one.
func (q *question) epilog() bool {
	declared := q.rest.Base == 0 ||
		q.info.FrameReg != 0 && q.rest.Base == x86asm.RAX+x86asm.Reg(q.info.FrameReg)
	return q.ours.how == entry && q.info.Version == 1 && declared && q.ends() && (q.leaves() || !q.rest.REX)
}

// right tells whether our answer is the epilog's, run to its end. Inside it no
// handler is in charge.
func (q *question) right() bool {
	a := answer{regs: q.rest.Regs, begin: q.ours.begin, frame: q.wine.frame}
	return differ(q.ours, &a) == ""
}

// leaves tells whether the epilog's rest ends in a jump out of the function.
func (q *question) leaves() bool { return q.rest.Leaves(q.f, q.fn, &q.info) }

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

// place shows a function around an address, for a human.
func place(f *pe.File, rva uint32) string {
	fn, why := f.AMD64().Find(rva)
	info, fault := f.AMD64().Info(fn.Unwind)
	var b strings.Builder
	fmt.Fprintf(&b, "%#x in %#x-%#x (%v) version %d, prolog %d, %d slots, frame register %d, flags %d (%v):",
		rva, fn.Begin, fn.End, why,
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
