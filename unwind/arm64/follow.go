package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Code without unwind data and without frame records (such as distributions' musl) is left by following it,
// in two directions. Onward: from the frame's instruction over all branches to the returns. If they agree on
// SP and on an x30 that follows a call, that is the caller. From the start, if no return is reached (the
// function never returns, or only calls functions that do not): a word of the stack that is a return address
// shows which function was called. Executed from its start, the function must have saved x30 exactly at that
// word. If no word identifies the function, each place before the instruction where a function may begin is
// tried.
//
// Neither direction is a proof: code after a call that never returns belongs to another function, and a stack
// is full of stale return addresses. So the result is doubtful, unwind.TrustCode.

// Bounds of one step.
const (
	maxFollow  = 1500    // instructions
	maxEntered = 1500    // instructions, of a function from its start
	maxPaths   = 48      // pending branches
	maxWords   = 2048    // of the stack to search for return addresses
	maxEntries = 24      // functions executed from their start
	maxSeen    = 4096    // entries of the table of followed addresses; a power of two
	maxBack    = 1 << 10 // bytes before the instruction to search for a function's start
)

// path is code that is still to be followed.
type path struct {
	pc uint64
	e  emulator
}

// follower is the storage of a step.
type follower struct {
	m     *module.Module
	mem   *memory.Window // source of loads; nil in a run from the start, because memory has changed since
	left  int            // instructions
	n     int
	paths [maxPaths]path
	run   uint64
	seen  [maxSeen]uint64 // followed addresses, with the run's number

	goal     uint64 // in a run from the start: the instruction to reach
	uncalled bool   // a path ends at a call
	sp       uint64 // the frame's SP

	found   emulator
	ok      bool
	returns int  // onward: returns that were reached and whose address follows a call
	torn    bool // two returns disagree: there is no result
}

// begin starts a run at pc.
func (f *follower) begin(m *module.Module, pc uint64) *emulator {
	f.m, f.n, f.goal, f.uncalled, f.ok, f.returns, f.torn = m, 1, 0, false, false, 0, false
	f.run++
	f.paths[0] = path{pc: pc}
	return &f.paths[0].e
}

// first reports whether an address is followed for the first time in this run.
func (f *follower) first(pc uint64) bool {
	key := f.run<<40 | pc&(1<<40-1)
	slot := &f.seen[(pc>>2^pc>>14)&(maxSeen-1)]
	if *slot == key {
		return false
	}
	*slot = key
	return true
}

// add queues a path; if there is no room, it is not followed.
func (f *follower) add(pc uint64, e *emulator) {
	if f.n < maxPaths {
		f.paths[f.n] = path{pc, *e}
		f.n++
	}
}

// follow executes the queued paths until one gives a result or none is left.
func (u *Unwinder) follow() {
	f := &u.follower
	for f.n > 0 && !f.ok && !f.torn {
		f.n--
		u.followPath(f.paths[f.n].pc, &f.paths[f.n].e)
	}
}

// followPath executes one path to its end. e is a copy of from, because the next queued path reuses that
// storage.
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
		how, distance := e.run(w, f.mem)
		switch how {
		case flowCall:
			if f.uncalled {
				return
			}
			pc += 4
		case flowNext:
			pc += 4
		case flowBranch:
			f.add(pc+uint64(distance), &e)
			pc += 4
		case flowJump:
			pc += uint64(distance)
		case flowReturn:
			u.returned(&e)
			return
		default:
			return
		}
	}
}

// returned handles a return: its address must follow a call. Two returns that agree are enough; two that
// disagree give no result. In a run from the start, no return address is known.
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

// code steps out of code of module i by following it, if that gives a possible caller.
func (u *Unwinder) code(i int, s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	if i < 0 || i >= u.table.Len() {
		return false
	}
	to, ok := u.byFollowing(u.table.At(i), s, mem)
	if !ok || u.accept(&to, false, &s.Regs.ARM64, b, f) != unwind.StopNone {
		return false
	}
	u.trust = unwind.TrustCode
	return true
}

// byFollowing finds the caller of code of module m.
func (u *Unwinder) byFollowing(m *module.Module, s *unwind.State,
	mem *memory.Window) (to Registers, ok bool) {
	regs, f := &s.Regs.ARM64, &u.follower
	f.left = maxFollow
	if u.onward(m, s, mem) {
		return f.leave(), true
	}
	if to, ok = u.backward(m, regs, mem); ok {
		return to, true
	}
	return u.fromStart(m, regs, mem)
}

// onward follows the code to its returns. In a frame that has made a call, x30 belongs to its callee.
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

// leave returns the caller's registers at a return.
func (f *follower) leave() (to Registers) {
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
