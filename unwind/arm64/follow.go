package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Code without unwind data and without frame records (musl as distributions build it) is left by
// following it. Onward: from the frame's instruction over all branches to the returns; where they
// agree on SP and x30, with a call before it, that is the caller. Where no return is reached (the
// function never returns, or only calls what does not), from its beginning: a word of the stack that
// is a return address tells which function was called; run from there, the code must have saved x30
// just where that word lies. Where no word names the function, the places before the instruction at
// which one may begin are tried.
//
// Neither proves anything: code behind a call that never returns is another function's, and a stack is
// full of old return addresses. So what is found is doubtful, unwind.TrustCode.

// Bounds of one step.
const (
	maxFollow  = 1500 // instructions
	maxEntered = 1500 // of a function from its beginning
	maxPaths   = 48   // branches not yet taken
	maxWords   = 2048 // of the stack, searched for return addresses
	maxEntries = 24   // functions run from their beginning
	maxSeen    = 4096 // places in the table of those that were followed; a power of two
	maxBack    = 1 << 10
)

// path is code that has still to be followed.
type path struct {
	pc uint64
	e  emulator
}

// follower is the storage of a step.
type follower struct {
	m     *module.Module
	mem   *memory.Window // what loads read; nil from a function's beginning: what lies there now is not what the code found
	left  int            // instructions
	n     int
	paths [maxPaths]path
	run   uint64
	seen  [maxSeen]uint64 // addresses followed, and in which run

	goal     uint64 // from a function's beginning: where it must come to
	uncalled bool   // without a call on the way
	sp       uint64 // the frame's

	found   emulator
	ok      bool
	returns int // onward: returns that were reached and agree
	torn    bool
}

// begin starts a run at pc.
func (f *follower) begin(m *module.Module, pc uint64) *emulator {
	f.m, f.n, f.goal, f.uncalled, f.ok, f.returns, f.torn = m, 1, 0, false, false, 0, false
	f.run++
	f.paths[0] = path{pc: pc}
	return &f.paths[0].e
}

// first tells whether an address is followed for the first time in this run.
func (f *follower) first(pc uint64) bool {
	key := f.run<<40 | pc&(1<<40-1)
	slot := &f.seen[(pc>>2^pc>>14)&(maxSeen-1)]
	if *slot == key {
		return false
	}
	*slot = key
	return true
}

// add keeps a path for later; without room it is not followed.
func (f *follower) add(pc uint64, e *emulator) {
	if f.n < maxPaths {
		f.paths[f.n] = path{pc, *e}
		f.n++
	}
}

// follow runs the paths one after the other, until one answers or none is left.
func (u *Unwinder) follow() {
	f := &u.follower
	for f.n > 0 && !f.ok && !f.torn {
		f.n--
		u.followPath(f.paths[f.n].pc, &f.paths[f.n].e)
	}
}

// followPath runs one path to its end. The first path added later takes the
// place of from, of which e is a copy therefore.
func (u *Unwinder) followPath(pc uint64, from *emulator) {
	f, e := &u.follower, *from
	for f.left > 0 {
		if f.goal == pc {
			f.found, f.ok = e, e.regs[regSP].kind == knownValue
			return
		}
		w, ok := codeWord(f.m, pc, nil)
		if !ok || !f.first(pc) {
			return
		}
		f.left--
		how, by := e.run(w, f.mem)
		switch how {
		case flowCall:
			if f.uncalled {
				return
			}
			pc += 4
		case flowNext:
			pc += 4
		case flowBranch:
			f.add(pc+uint64(by), &e)
			pc += 4
		case flowJump:
			pc += uint64(by)
		case flowReturn:
			if f.goal == 0 {
				u.returned(&e)
			}
			return
		default:
			return
		}
	}
}

// returned looks at a return: its address must be one that a call left. Two
// returns that agree are enough; two that do not are no answer.
func (u *Unwinder) returned(e *emulator) {
	f := &u.follower
	sp, lr := e.regs[regSP], e.regs[regLR]
	if sp.kind != knownValue || sp.v < f.sp || lr.kind != knownValue || !u.afterCall(stripPAC(lr.v), f.mem) {
		return
	}
	switch {
	case f.returns == 0:
		f.found = *e
	case f.found.regs[regSP] != sp || f.found.regs[regLR] != lr:
		f.torn = true
	default:
		f.ok = true
	}
	f.returns++
}

// code steps out of code of module i by following it, if that leads to a caller
// that can be one.
func (u *Unwinder) code(i int, s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	if i < 0 || i >= u.table.Len() {
		return false
	}
	to, ok := u.byFollowing(u.table.At(i), s, mem)
	if !ok || u.accept(&to, false, &s.Regs.ARM64, b, f) != unwind.StopNone {
		return false
	}
	u.by = unwind.TrustCode
	return true
}

// byFollowing finds the caller of code of module m.
func (u *Unwinder) byFollowing(m *module.Module, s *unwind.State, mem *memory.Window) (to Registers, ok bool) {
	regs, f := &s.Regs.ARM64, &u.follower
	f.left = maxFollow
	if u.onward(m, s, mem) {
		return f.leave(regs), true
	}
	if to, ok = u.backward(m, regs, mem); ok {
		return to, true
	}
	return u.fromStart(m, regs, mem)
}

// onward follows the code to its returns. What a frame that has called has in x30
// is its callee's.
func (u *Unwinder) onward(m *module.Module, s *unwind.State, mem *memory.Window) bool {
	f, regs := &u.follower, &s.Regs.ARM64
	e := f.begin(m, regs.PC)
	for i := range regs.X {
		if known(regs, i) && (s.Exact || i != regLR) {
			e.regs[i] = value64{regs.X[i], knownValue}
		}
	}
	e.regs[regSP] = value64{regs.Sp, knownValue}
	f.mem, f.sp = mem, regs.Sp
	u.follow()
	return !f.torn && f.returns > 0
}

// leave gives the caller's registers at a return.
func (f *follower) leave(regs *Registers) (to Registers) {
	lr := f.found.regs[regLR].v
	to.PC, to.Sp, to.X[regLR], to.Known = stripPAC(lr), f.found.regs[regSP].v, lr, 1<<regLR
	for reg, v := range f.found.regs[:regLR] {
		if v.kind == knownValue && nonvolatile>>reg&1 != 0 {
			to.X[reg] = v.v
			to.Known |= 1 << reg
		}
	}
	return to
}
