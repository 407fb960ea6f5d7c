package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// maxFunction bounds the length of a function.
const maxFunction = 1 << 16

// entrySP is SP at the beginning of a run from a function's start. Afterwards, addresses are shifted by the
// distance to the real SP.
const entrySP = 1 << 40

// backward searches the stack for a return address: the function called there must save x30 in its word.
func (u *Unwinder) backward(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, ok bool) {
	tries := 0
	for i := range uint64(maxWords) {
		at := regs.Sp + 8*i
		ra, ok := mem.Word(at)
		if !ok || tries == maxEntries {
			break
		}
		fn, calls := u.calls(m, regs.PC, stripPAC(ra))
		if !calls {
			continue
		}
		tries++
		u.follower.left = maxEntered
		if saved, ok := u.entered(m, fn, regs); ok && saved == at {
			return u.restored(regs, mem, ra), true
		}
	}
	return to, false
}

// calls returns the function that the call before ra called directly, if pc may be in it.
func (u *Unwinder) calls(m *module.Module, pc, ra uint64) (fn uint64, ok bool) {
	if ra-m.Start > m.End-m.Start {
		return 0, false
	}
	w, ok := codeWord(m, ra-4, nil)
	if !ok || w>>26 != 0x25 {
		return 0, false
	}
	fn = ra - 4 + uint64(int64(int32(w<<6)>>6)*4)
	return fn, fn-m.Start < m.End-m.Start && fn <= pc && pc-fn < maxFunction
}

// enter starts a run at a function's first instruction.
func (f *follower) enter(m *module.Module, fn uint64) *emulator {
	e := f.begin(m, fn)
	for reg := range uint64(regSP) {
		if nonvolatile>>reg&1 != 0 || reg == regLR {
			e.regs[reg] = value64{reg, entryValue}
		}
	}
	e.regs[regSP] = value64{entrySP, knownValue}
	return e
}

// entered executes a function from its start to the frame's instruction and returns the stack address at
// which it has saved x30. ok is false if it does not get there or has not saved x30.
func (u *Unwinder) entered(m *module.Module, fn uint64, regs *Registers) (saved uint64, ok bool) {
	f := &u.follower
	f.enter(m, fn)
	f.mem, f.goal = nil, regs.PC
	u.follow()
	if !f.ok {
		return 0, false
	}
	return f.where(regLR, regs)
}

// where returns the stack address at which a run has saved a register.
func (f *follower) where(reg uint64, regs *Registers) (at uint64, ok bool) {
	at, ok = f.found.saved(reg)
	return at + regs.Sp - f.found.regs[regSP].v, ok
}

// restored returns the caller of a function that was executed from its start: preserved registers are read
// from where it saved them, or are unchanged.
func (u *Unwinder) restored(regs *Registers, mem *memory.Window, lr uint64) (to Registers) {
	f := &u.follower
	to.PC, to.X[regLR], to.Known = stripPAC(lr), lr, 1<<regLR
	to.Sp = entrySP + regs.Sp - f.found.regs[regSP].v
	for reg := range uint64(regLR) {
		if nonvolatile>>reg&1 == 0 {
			continue
		}
		v, ok := regs.X[reg], known(regs, int(reg)) && f.found.regs[reg] == value64{reg, entryValue}
		if at, saved := f.where(reg, regs); saved {
			v, ok = mem.Word(at)
		}
		if ok {
			to.X[reg] = v
			to.Known |= 1 << reg
		}
	}
	return to
}

// fromStart searches for the start of a function that never returns and that no word of the stack identifies.
// The x30 that the function has saved must be a return address.
func (u *Unwinder) fromStart(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, ok bool) {
	f := &u.follower
	f.left = 2 * maxEntered
	for fn := regs.PC; fn > regs.PC-maxBack && f.left > 0; fn -= 4 {
		if w, ok := codeWord(m, fn-4, nil); !ok || !ends(w) {
			continue
		}
		at, saved := u.entered(m, fn, regs)
		if !saved || at < regs.Sp {
			continue
		}
		if ra, ok := mem.Word(at); ok && u.afterCall(stripPAC(ra), mem) {
			return u.restored(regs, mem, ra), true
		}
	}
	return to, false
}

// ends reports whether a function may begin after an instruction: a return, a jump, a call (which may not
// return), padding, or a stop.
func ends(w uint32) bool {
	return w == 0xd65f03c0 || w == insNop || w == 0 || w>>26 == 5 || w>>24 == 0xd4 || w>>26 == 0x25
}
