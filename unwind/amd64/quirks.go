package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Call frame information that compilers get wrong, as the code shows. All of it concerns instructions at
// which a thread was interrupted: at calls it is right. A walker that trusts it finds wrong callers there.

// Bounds of the code that is executed for a row, in bytes.
const (
	minLate   = 40 // of a row that may be too late: a store of each of ten registers
	maxLate   = 256
	maxProlog = 32
)

// straight executes the code between two addresses of the image, at most max bytes apart, with entrySP in RSP
// at first. ok is false if the code jumps, calls, or returns, or if RSP becomes unknown.
func (u *Unwinder) straight(m *module.Module, from, to, max uint64) (e *emulator, ok bool) {
	if to-from > max || !m.SystemV() {
		return nil, false
	}
	u.follower.enter(m, from+m.Bias, entrySP)
	e = &u.follower.paths[0].e
	for code := m.Bytes(from+m.Bias, int(to-from)); from < to; {
		in := x86.Decode(code)
		if in.Size == 0 || e.run(&in, nil) != flowNext {
			return nil, false
		}
		from, code = from+uint64(in.Size), code[in.Size:]
	}
	return e, e.regs[context.RSP].kind == knownValue
}

// catchUp corrects the CFA of a row that misses a decrease of the stack pointer by the code from the row's
// start to addr. clang writes such rows in the prolog of a function with the Microsoft calling convention. It
// pushes RSI and RDI, lowers RSP, and advances the CFA only after ten XMM registers are saved. Such a row is
// long and lists no saved register yet. catchUp reads the code of few other rows.
func (u *Unwinder) catchUp(row *cfi.Row, m *module.Module, addr uint64) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || row.CFA.Off < 24 ||
		row.Used != [2]uint64{1 << dwarfRA} || row.Hi-row.Lo < minLate {
		return
	}
	if e, ok := u.straight(m, row.Lo, addr, maxLate); ok && e.regs[context.RSP].v < entrySP {
		row.CFA.Off += int64(entrySP - e.regs[context.RSP].v)
	}
}

// unpush corrects a row that lists registers as saved before the code from the record's start to addr has
// stored them: their places are below RSP. clang writes such rows for block sections (seen in 19).
func (u *Unwinder) unpush(row *cfi.Row, m *module.Module, addr uint64) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg >= dwarfRA || addr-row.FDE.Lo > maxProlog ||
		!savedBelow(row, row.CFA.Off) {
		return
	}
	e, ok := u.straight(m, row.FDE.Lo, addr, maxProlog)
	if !ok || e.get(fromDWARF[row.CFA.Reg]).kind != knownValue {
		return
	}
	cfa := e.get(fromDWARF[row.CFA.Reg]).v + uint64(row.CFA.Off)
	for c := range row.Regs[:dwarfRA] {
		at := cfa + uint64(row.Regs[c].Off)
		if row.Regs[c].Kind == cfi.Offset &&
			at < e.regs[context.RSP].v && e.load(at, nil).kind != entryValue {
			row.Set(c, cfi.Rule{Kind: cfi.SameValue})
		}
	}
}

// returnByJump corrects a row after the pop of the return address, which the row still has on the stack. With
// clang's hardening against load value injection, functions return by pop reg; lfence; jmp reg. Such code
// ends a row, so code is read only for addresses near the end of one. returnByJump also corrects a row at a
// plain return that still lists saved registers: they have the caller's values again.
func returnByJump(row *cfi.Row, m *module.Module, addr uint64) {
	const size = 8 // with two REX prefixes
	left := row.Hi - addr
	if left > 6 || row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP ||
		row.CFA.Off != 8 || !m.SystemV() {
		return
	}
	code := m.Bytes(row.Hi+m.Bias-size, size)
	if len(code) < size {
		return
	}
	if left == 1 && code[size-1] == 0xc3 && savedBelow(row, 8) {
		restored(row)
		return
	}
	n, reg := x86.PopReturn(code)
	if n != 2 {
		n, reg = x86.PopReturn(code[2:])
	}
	if n != 0 && left <= uint64(n)+4 {
		row.CFA.Off = 0
		row.Set(dwarfRA, cfi.Rule{Kind: cfi.Register, Reg: uint16(slices.Index(fromDWARF[:], reg))})
	}
}

// maxPushed is how many bytes of code are searched for the push of a number, and for its pop.
const maxPushed = 32

// pushedNumber returns the number of a push imm8 in before that a pop in after loads, if only moves and
// computations are between the two. gcc -Oz loads a register in that way, and its unwind data list neither
// push nor pop (seen in 12, at most 23 bytes apart). gcc does not push 0, a common word.
func pushedNumber(before, after []byte) (number uint64, ok bool) {
	const push = 0x6a
	for at := bytes.IndexByte(before, push); at >= 0 &&
		at+2 <= len(before); at = bytes.IndexByte(before, push) {
		if before = before[at+1:]; before[0] != 0 && len(skipPlain(before[1:])) == 0 {
			rest := skipPlain(after)
			n, _ := x86.Pop(rest)
			return uint64(int64(int8(before[0]))), n != 0 && n < len(rest)
		}
	}
	return 0, false
}

// unlistedPush corrects a row without such a push. The row extends beyond the pop.
func unlistedPush(row *cfi.Row, m *module.Module, addr uint64) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || !m.SystemV() {
		return
	}
	begin := max(row.Lo, addr-min(addr, maxPushed))
	before, after := m.Bytes(begin+m.Bias, int(addr-begin)),
		m.Bytes(addr+m.Bias, int(min(row.Hi-addr, maxPushed)))
	if _, ok := pushedNumber(before, after); ok {
		row.CFA.Off += 8
	}
}

// maxEpilog is how many instructions of an epilog are executed.
const maxEpilog = 64

// epilog executes a frame's code up to its return or tail call, if only simple instructions come before. It
// is needed for gcc's functions that realign their stack: their rows locate registers relative to RBP after
// RBP was restored (mov r10, [rbp-8]; leave; ...; lea rsp, [r10-8]; ret). A jump is a tail call if the frame
// that ends at cfa is gone. straight reports whether the code reaches a return or a jump, even if !ok.
func (u *Unwinder) epilog(m *module.Module, cfa uint64, regs *Registers,
	mem *memory.Window) (to Registers, straight, ok bool) {
	if !m.SystemV() {
		return to, false, false
	}
	var e emulator
	e.enterFrame(regs)
	ip := regs.RIP
	code := m.Bytes(ip, maxEpilog*8)
	for range maxEpilog {
		in := x86.Decode(code)
		if in.Size == 0 {
			break
		}
		ip, code = ip+uint64(in.Size), code[in.Size:]
		switch e.run(&in, mem) {
		case flowNext:
			continue
		case flowCall:
			if in.Op != 0xe8 || !bytes.HasPrefix(code, x86.Trap) {
				return to, false, false
			}
			e.push(value64{ip, knownValue})
			ip += uint64(in.Disp)
			code = m.Bytes(ip, maxEpilog)
			continue
		case flowReturn:
			to, ok = e.leave(regs, mem, nonvolatile)
			return to, true, ok && (to.GPR[context.RSP] == cfa || u.afterCall(to.RIP))
		case flowJump, flowIndirect:
			to, ok = e.leave(regs, mem, nonvolatile)
			if u.returnsTo(&e, &in, cfa, mem) { // pop reg; lfence; jmp reg
				to.RIP, to.GPR[context.RSP] = e.get(in.RM).v, to.GPR[context.RSP]-8
				return to, true, ok
			}
			return to, true, ok && to.GPR[context.RSP] == cfa && u.afterCall(to.RIP)
		}
		break
	}
	return to, false, false
}

// returnsTo reports whether a jump through a register is a return. The register must contain a return
// address, and SP must be at the frame's end, or just above the word from which the address was popped.
func (u *Unwinder) returnsTo(e *emulator, in *x86.Insn, cfa uint64, mem *memory.Window) bool {
	ra, sp := e.get(in.RM), e.regs[context.RSP].v
	return in.Op == 0xff && !in.Memory && ra.kind == knownValue &&
		(sp == cfa || e.load(sp-8, mem) == ra) && u.afterCall(ra.v)
}
