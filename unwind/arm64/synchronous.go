package arm64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Call frame information may be synchronous: right where functions make calls, and wrong inside prologs and
// epilogs, where a signal may interrupt. clang writes it at -Oz (seen in 19), and any compiler with
// -fno-asynchronous-unwind-tables. The code decides: a prolog is executed from the function's first
// instruction, an epilog to its return. If the row contradicts, the code is right.
//
// Source: Arm, "Procedure Call Standard", section "Subroutine calls": SP at a return is what it was at the
// call, which is the CFA.

// maxStraight bounds the instructions of a prolog or an epilog.
const maxStraight = 24

// correct corrects the row of an interrupted instruction. It returns false if it cannot: the code changes x30
// before it returns, and the row does not list where x30 is saved.
func (u *Unwinder) correct(m *module.Module, addr uint64, row *cfi.Row) bool {
	if row.FDE.Signal || row.CFA.Reg == regSP && row.CFA.Off < 0 || row.CFA.Kind != cfi.RegisterOffset ||
		row.FDE.RA != regLR {
		return true
	}
	if inCallThunk(m, addr) {
		u.follower.enter(m, addr).describe(row)
		return true
	}
	prolog := u.amidProlog(m, addr, row)
	ok := u.amidEpilog(m, addr, row, prolog) || prolog // both: a part of an epilog is a function's start too
	popped(row)
	return ok
}

// amidProlog corrects a row by the code from the function's start to addr. It reports whether addr could be
// reached that way.
func (u *Unwinder) amidProlog(m *module.Module, addr uint64, row *cfi.Row) bool {
	lo, f := row.FDE.Lo+m.CFIBias(), &u.follower
	there, saves := u.straight(m, lo, addr, row)
	switch {
	case there && (saves || bare(row)):
	case bare(row) && addr-lo < maxFunction: // it may be reached by a branch
		f.left = 2 * maxStraight
		f.enter(m, lo)
		f.mem, f.goal, f.uncalled = nil, addr, true
		if u.follow(); !f.ok {
			return false
		}
	default:
		// A range with a record of its own may be part of a function elsewhere, unless it saves x30, as
		// function starts do.
		return false
	}
	if e := &f.found; e.known() && !e.agrees(row) {
		e.describe(row)
	}
	return true
}

// straight executes a function from its start and takes no branch. there means that it reaches addr, with its
// state there in u.follower.found. saves means that it saves x30 up to there or soon after.
func (u *Unwinder) straight(m *module.Module, lo, addr uint64, row *cfi.Row) (there, saves bool) {
	e := u.follower.enter(m, lo)
	for pc := lo; pc < lo+4*maxStraight && pc < row.FDE.Hi+m.CFIBias(); pc += 4 {
		if pc == addr {
			there, u.follower.found = true, *e
		}
		w, _ := codeWord(m, pc, nil) // 0 if there is no code: flowStop
		if e.through(m, pc, w) {
			continue
		}
		how, _ := e.run(w, nil)
		if _, saves = e.saved(regLR); there && saves || how != flowNext && how != flowBranch {
			break
		}
	}
	return there, saves
}

// known reports whether the caller's SP and the return address of a function executed from its start are
// known.
func (e *emulator) known() bool {
	_, saved := e.saved(regLR)
	return (e.regs[regSP].kind == knownValue || e.regs[regFP].kind == knownValue) &&
		(saved || e.regs[regLR] == value64{regLR, entryValue})
}

// saved returns where a register's value at the function's start has been stored.
func (e *emulator) saved(reg uint64) (at uint64, ok bool) {
	for i := range e.stores[:e.n] {
		if s := &e.stores[i]; s.v == (value64{reg, entryValue}) {
			return s.at, true
		}
	}
	return 0, false
}

// agrees reports whether a row gives the CFA and the return address of a function executed from its start.
func (e *emulator) agrees(row *cfi.Row) bool {
	base := e.regs[row.CFA.Reg&31]
	if base.kind != knownValue || base.v+uint64(row.CFA.Off) != entrySP {
		return false
	}
	at, saved := e.saved(regLR)
	lr := &row.Regs[regLR]
	if lr.Kind == cfi.Offset {
		return saved && at == entrySP+uint64(lr.Off)
	}
	return e.regs[regLR] == value64{regLR, entryValue}
}

// describe writes the row of a function executed from its start.
func (e *emulator) describe(row *cfi.Row) {
	base := regSP
	if e.regs[regSP].kind != knownValue { // aligned, for example
		base = regFP
	}
	row.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: uint16(base), Off: int64(entrySP - e.regs[base].v)}
	for reg := uint64(firstX); reg <= regLR; reg++ {
		rule := cfi.Rule{Kind: cfi.SameValue}
		if at, ok := e.saved(reg); ok {
			rule = cfi.Rule{Kind: cfi.Offset, Off: int64(at - entrySP)}
		}
		row.Set(int(reg), rule)
	}
}

// amidEpilog corrects a row by the straight code from addr to the function's exit. It returns false if x30 is
// changed on the way and the row does not list its place. trusted: the row's registers are right.
func (u *Unwinder) amidEpilog(m *module.Module, addr uint64, row *cfi.Row, trusted bool) bool {
	e := u.follower.enter(m, addr)
	e.constants(m, max(row.FDE.Lo+m.CFIBias(), addr-4*maxConstants), addr)
	if !u.leadsOut(m, addr, e) {
		return true
	}
	sp := e.regs[regSP]
	if sp.kind == knownValue && !trusted {
		e.reload(row)
	}
	if e.regs[regLR] != (value64{regLR, entryValue}) && inRegister(row) {
		return false
	}
	gone := row.CFA.Reg == regFP && row.Regs[regFP].Kind == cfi.Offset &&
		e.regs[regFP] == (value64{regFP, entryValue})
	if sp.kind == knownValue && (gone || row.CFA.Reg == regSP) {
		row.CFA.Reg, row.CFA.Off = regSP, int64(sp.v-entrySP)
	}
	return true
}

// maxConstants bounds the instructions that load the size of a large frame before it is added to SP.
const maxConstants = 4

// constants executes the moves of constants that end right before addr, and begin at lo or later.
func (e *emulator) constants(m *module.Module, lo, addr uint64) {
	const mask, moveWide = 0x1f800000, 0x12800000 // movn, movz, movk
	from := addr
	for w := uint32(0); from > lo; from -= 4 {
		if w, _ = codeWord(m, from-4, nil); w&mask != moveWide {
			break
		}
	}
	for ; from < addr; from += 4 {
		w, _ := codeWord(m, from, nil)
		e.run(w, nil)
	}
}

// reload corrects a row that lists registers as restored too early. For frames of more than 64 KiB, gcc's
// scheduler moves the instruction with the note that all are restored before other loads.
func (e *emulator) reload(row *cfi.Row) {
	loaded := func(column int, at uint64) {
		if at >= entrySP && unsaved(row.Regs[column].Kind) {
			row.Set(column, cfi.Rule{Kind: cfi.Offset, Off: int64(at - e.regs[regSP].v)})
		}
	}
	for reg := firstX; reg <= regLR; reg++ {
		if v := e.regs[reg]; v.kind == loadedValue {
			loaded(reg, v.v)
		}
	}
	for i, at := range e.vectors {
		loaded(cfi.Column(context.ArchARM64, uint64(72+i)), at)
	}
}

// leadsOut executes straight code, and an outlined part after its jump, to where it leaves the function.
func (u *Unwinder) leadsOut(m *module.Module, pc uint64, e *emulator) bool {
	for range maxStraight {
		w, _ := codeWord(m, pc, nil)
		if zeroing(w) && zeroes(m, pc) { // more instructions than an epilog has
			return true
		}
		switch how, distance := e.run(w, nil); how {
		case flowNext, flowBranch:
			pc += 4
		case flowReturn:
			return true
		case flowJump:
			pc += uint64(distance)
			if in := *e; in.toReturn(m, pc) && in.regs[regSP].kind == knownValue {
				*e = in
			}
			return u.begins(m, pc-m.CFIBias())
		default:
			return false
		}
	}
	return false
}

// maxOutlined bounds the instructions of code that a compiler has moved out of several functions.
const maxOutlined = 16

// toReturn executes straight code to its return. Without a return, it returns false. clang at -Oz moves parts
// of prologs and epilogs, which change SP and saved registers, into functions that others call or jump to.
func (e *emulator) toReturn(m *module.Module, pc uint64) bool {
	for range maxOutlined {
		w, _ := codeWord(m, pc, nil)
		if how, _ := e.run(w, nil); how != flowNext {
			return how == flowReturn
		}
		pc += 4
	}
	return false
}

// through executes the instruction w at pc, if it is a direct call of straight code that returns to it,
// together with that code. Otherwise it changes nothing and returns false.
func (e *emulator) through(m *module.Module, pc uint64, w uint32) bool {
	if w>>26 != 0x25 {
		return false
	}
	in, back := *e, value64{pc + 4, knownValue}
	in.regs[regLR] = back
	if !in.toReturn(m, pc+uint64(int64(int32(w<<6)>>6)*4)) || in.regs[regLR] != back {
		return false
	}
	*e = in
	return true
}

// begins reports whether a function may begin at an address of the image. A part of a function elsewhere has
// rows that show it; an entry of a linkage table has none.
func (u *Unwinder) begins(m *module.Module, at uint64) bool {
	switch u.machine.Row(m.CFI, at, &u.next) {
	case cfi.None:
		return u.next.FDE.Lo == at && bare(&u.next)
	case cfi.NoInfo:
		return true
	}
	return false
}

// bare reports whether a row is that of a function that has executed nothing yet.
func bare(row *cfi.Row) bool {
	return row.CFA.Kind == cfi.RegisterOffset && row.CFA.Reg == regSP && row.CFA.Off == 0 && inRegister(row)
}
