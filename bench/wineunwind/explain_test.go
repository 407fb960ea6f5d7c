package wineunwind

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/epilog"
)

// question is a point whose answers differ.
type question struct {
	epilog.Site
	p          *point
	ours, wine *answer
	mem        *memory.Window
	class      string // what explains it, "" if nothing does
}

func newQuestion(f *pe.File, p *point, ours, wine *answer, mem *memory.Window) *question {
	return &question{Site: epilog.At(f, p.rva, &p.regs, mem), p: p, ours: ours, wine: wine, mem: mem}
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

// classes are tried in this order, after those of epilog.Site.WineFault. What Wine does say is_inside_epilog
// and RtlVirtualUnwind of 8.0.
var classes = [...]class{
	// Wine takes away the arguments, too; to Windows they are the caller's matter.
	{"ret imm16", false, func(q *question) bool {
		theirs := *q.wine
		theirs.regs.GPR[context.RSP] -= q.Imm
		return q.End == epilog.RetImm && !q.REX && q.right() && differ(q.ours, &theirs) == ""
	}},
	// With R12 as its base lea has a SIB byte. Wine takes that for no epilog;
	// unwinder.cpp does not count the byte and so mostly goes by the codes, too.
	// Both come to the same when the function really runs, and so do we.
	{"lea from R12", false, func(q *question) bool {
		return q.Info.Version == 1 && q.Base == x86asm.R12 && q.Info.FrameReg == context.R12 &&
			q.Ends() && q.right()
	}},
	// Wine skips any REX prefix before a return, Windows knows none there: the
	// bytes are another instruction's middle.
	{"ret with a REX prefix", true, func(q *question) bool {
		return (q.End == epilog.Ret || q.End == epilog.RetImm) && q.REX && !q.right()
	}},
	// Wine looks on behind a jump that stays in the function. For Windows such a
	// jump ends no epilog: the function is left by its codes, which of one with a
	// frame register need not give the same if RSP is elsewhere.
	{"jump inside the function to an epilog", true, func(q *question) bool {
		return q.End == epilog.JumpRel && q.Fn.Contains(q.Target) && !q.Leaves() && !q.right()
	}},
	// The CLR's compiler makes functions with a frame register their unwind
	// information does not name. Windows takes a lea from such a register for no
	// epilog; Wine does, and so names no handler.
	{"lea from an undeclared register", true, func(q *question) bool {
		theirs := *q.wine
		theirs.handler = q.ours.handler
		return q.Base != 0 && q.Base != x86asm.RAX+x86asm.Reg(q.Info.FrameReg) && q.Ends() &&
			q.wine.handler == 0 && differ(q.ours, &theirs) == ""
	}},
}

// epilog tells whether the rest is an epilog that Windows takes for one.
func (q *question) epilog() bool {
	declared := q.Base == 0 ||
		q.Info.FrameReg != 0 && q.Base == x86asm.RAX+x86asm.Reg(q.Info.FrameReg)
	return q.ours.how == entry && q.Info.Version == 1 && declared && q.Ends() && (q.Leaves() || !q.REX)
}

// right tells whether our answer is the epilog's, run to its end. Inside it no
// handler is in charge.
func (q *question) right() bool {
	a := answer{regs: q.Regs, begin: q.ours.begin, frame: q.wine.frame}
	return differ(q.ours, &a) == ""
}

// explain names the class that explains a difference, "" if none does.
func (q *question) explain() (name string, elsewhere bool) {
	if name := q.WineFault(); name != "" && q.right() {
		return name, false
	}
	for _, c := range classes {
		if c.match(q) {
			return c.name, c.elsewhere
		}
	}
	return "", false
}

// elsewhere gives the question again, in the body of the function: at the first
// instruction behind the prolog that cannot belong to an epilog.
func (q *question) elsewhere() (p point, ok bool) {
	at := q.Fn.Begin + uint32(q.Info.Prolog)
	if at >= q.Fn.End {
		return p, false
	}
	for _, in := range sweep(q.File.Tail(at, int(min(q.Fn.End-at, maxSweep))), at) {
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
