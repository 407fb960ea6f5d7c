package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Code without unwind data and without frame pointers (such as distributions' musl) is left by following it,
// in two directions. Onward: from the frame's instruction over all branches to the returns. If they agree on
// a return address that follows a call, that is the caller. From the beginning, if no return is reached (the
// function never returns, or only calls functions that do not): a word of the stack that is a return address
// shows which function was called. Executed from its start, that function must reach the frame's instruction
// with the frame's stack pointer.
//
// Neither direction alone is a proof: code after a call that never returns belongs to another function, and a
// stack is full of stale return addresses. So the result of one is doubtful, unwind.TrustCode. If both find
// the same word of the stack, the step is proven, unwind.TrustLeaf.

// Bounds of one step.
const (
	maxFollow  = 1500 // instructions
	maxEntered = 1500 // instructions, of a function from its start
	maxPaths   = 48   // pending branches; start-up code has more than 24 at once
	maxWords   = 2048 // of the stack to search for return addresses
	maxEntries = 24   // functions executed from their start
	maxSeen    = 4096 // entries of the table of followed addresses; a power of two
)

// path is code that is still to be followed.
type path struct {
	ip uint64
	e  emulator
}

// follower is the storage of a step.
type follower struct {
	m     *module.Module
	kept  uint32         // the general registers that functions preserve
	mem   *memory.Window // source of loads; nil in a run from the start, because memory has changed since
	left  int            // instructions
	n     int
	paths [maxPaths]path
	run   uint64
	seen  [maxSeen]uint64 // followed addresses, with the run's number

	goal    uint64 // in a run from the start: the instruction to reach,
	sp, fp  uint64 // with these
	fpOK    bool   // fp is known
	measure bool   // or with any stack pointer: the run measures the distance to the return address

	found   emulator
	ok      bool
	returns int  // exits that were reached; onward, only returns whose address follows a call
	torn    bool // no result: exits disagree, or a proof failed
	calls   bool // the frame's function has called another

	prove  bool // all exits must agree, and none may be unknown
	called bool
}

// begin starts a run at ip.
func (f *follower) begin(m *module.Module, ip uint64) *emulator {
	f.m, f.n, f.goal, f.ok, f.returns, f.torn, f.measure = m, 1, 0, false, 0, false, false
	f.prove, f.called, f.kept = false, false, nonvolatile
	if !m.SystemV() {
		f.kept = windowsKept & (1<<16 - 1)
	}
	f.run++
	f.paths[0] = path{ip: ip}
	return &f.paths[0].e
}

// first reports whether an address is followed for the first time in this run.
func (f *follower) first(ip uint64) bool {
	key := f.run<<40 | ip&(1<<40-1)
	slot := &f.seen[(ip^ip>>12)&(maxSeen-1)]
	if *slot == key {
		return false
	}
	*slot = key
	return true
}

// add queues a path. Without room, the path is not followed, and a proof fails.
func (f *follower) add(ip uint64, e *emulator) {
	if f.n == maxPaths {
		f.torn = f.torn || f.prove
		return
	}
	f.paths[f.n] = path{ip, *e}
	f.n++
}

// follow executes the queued paths until one gives a result or none is left.
func (u *Unwinder) follow() {
	f := &u.follower
	for f.n > 0 && !f.ok && !f.torn {
		f.n--
		u.followPath(f.paths[f.n].ip, &f.paths[f.n].e)
	}
}

// followPath executes one path to its end. e is a copy of from, because the next queued path reuses that
// storage.
func (u *Unwinder) followPath(ip uint64, from *emulator) {
	f, e := &u.follower, *from
	var code []byte
	looping := false // a known comparison took the last jump: it may lead to a visited address
	for f.left > 0 {
		if f.goal == ip && f.reached(&e) || !f.first(ip) && !looping && !e.cmp.ok {
			return
		}
		f.left--
		if len(code) < x86.MaxInsn {
			code = f.m.Bytes(ip, codeWindow)
		}
		in := x86.Decode(code)
		if in.Size == 0 {
			f.torn = f.torn || f.prove
			return
		}
		ip, code = ip+uint64(in.Size), code[in.Size:]
		prev := e.cmp
		e.cmp.ok = false
		how := e.run(&in, f.mem)
		if in.PCRel && in.Op == 0x8d && in.Table == 0 { // the address of a function to jump to
			e.set(in.Reg, value64{ip + uint64(in.Disp), knownValue})
		}
		switch how {
		case flowCall:
			f.called = true
			continue
		case flowNext:
			continue
		case flowBranch:
			taken, decided := prev.decides(&in)
			if looping = decided && taken && !f.prove; looping {
				ip, code = ip+uint64(in.Disp), nil
				continue
			}
			if decided && !f.prove { // the code after it may have been followed with another stack pointer
				f.run++
				continue
			}
			f.add(ip+uint64(in.Disp), &e)
			continue
		case flowJump:
			ip, code = ip+uint64(in.Disp), nil
			continue
		case flowIndirect:
			if to := e.get(in.RM); !in.Memory && to.kind == knownValue && !(f.prove && u.afterCall(to.v)) {
				ip, code = to.v, nil
				continue
			}
			switch {
			case f.prove && in.Memory && in.PCRel: // by an import's address
				f.exit(&e)
			case f.prove: // a switch may lead anywhere in the function
				f.torn = true
			}
		case flowReturn:
			if f.prove {
				f.exit(&e)
			} else if f.goal == 0 {
				u.returned(&e)
			}
		}
		return
	}
	f.torn = f.torn || f.prove // out of instructions
}

// returnSlot is the address of a return address, modulo 16, when a function is called with an aligned stack
// (System V ABI, 3.2.2).
const returnSlot = 8

// returned handles a return on a followed path. Its return address must follow a call. Two returns that agree
// are enough. Two that disagree give no result (f.torn), with one exception: in a function that makes calls,
// a return that leaves an unaligned stack is in the next function, so the other return counts.
func (u *Unwinder) returned(e *emulator) {
	f := &u.follower
	at := e.regs[context.RSP]
	if at.kind != knownValue || at.v < f.sp {
		return
	}
	ra := e.load(at.v, f.mem)
	if ra.kind != knownValue || !u.afterCall(ra.v) {
		return
	}
	found := f.found.regs[context.RSP].v
	switch {
	case f.returns == 0:
		f.found = *e
	case found != at.v && f.calls && found&15 != at.v&15:
		if at.v&15 == returnSlot {
			f.found = *e
		}
	case found != at.v:
		f.torn = true
	default:
		f.ok = true
	}
	f.returns++
}

// reached ends a path at the frame's instruction and returns true. It sets f.ok if the path has the frame's
// stack pointer, or, if that is unknown, its frame pointer. If both are known, both must match.
func (f *follower) reached(e *emulator) bool {
	sp, fp := e.regs[context.RSP], e.regs[context.RBP]
	f.found = *e
	f.ok = sp.kind == knownValue && (f.measure || sp.v == f.sp)
	if !f.measure && f.fpOK && fp.kind == knownValue {
		f.ok = fp.v == f.fp && (f.ok || sp.kind == unknownValue)
	}
	return true
}

// code steps out of code of module i by following it, if that gives a possible caller. A function that makes
// calls was itself called with an aligned stack (System V ABI, 3.2.2). Compilers may skip the alignment for a
// callee in the same file. So code refuses other results, unless a run from the function's start confirms it.
func (u *Unwinder) code(i int, s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	if i < 0 {
		return false
	}
	m, regs := u.table.At(i), &s.Regs.AMD64
	u.follower.calls = !s.Exact
	to, entered, ok := u.byFollowing(m, regs, mem)
	if !ok || !s.Exact && !entered && to.GPR[context.RSP]&15 != 0 || u.accept(&to, false,
		regs, b, f) != unwind.StopNone {
		return false
	}
	if !entered {
		u.trust = unwind.TrustCode
	}
	return true
}

// byFollowing finds the caller of code of module m. entered means that the function's returns and a run from
// its start agree.
func (u *Unwinder) byFollowing(m *module.Module, regs *Registers,
	mem *memory.Window) (to Registers, entered, ok bool) {
	f := &u.follower
	f.left = maxFollow
	to, ok = u.onward(m, regs, mem)
	if ok && u.entered(m, regs, to.GPR[context.RSP]-8, mem, &to) {
		return to, true, true
	}
	if back, proven := u.backward(m, regs, mem); proven {
		return back, false, true
	}
	if !ok {
		to, ok = u.fromStart(m, regs, mem)
	}
	return to, false, ok
}

// onward follows the code to its returns.
func (u *Unwinder) onward(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, ok bool) {
	f := &u.follower
	f.begin(m, regs.RIP).enterFrame(regs)
	f.mem, f.sp = mem, regs.GPR[context.RSP]
	u.follow()
	if f.torn || f.returns == 0 {
		return to, false
	}
	return f.found.leave(regs, mem, f.kept)
}

// backward searches the stack for a return address from whose call the function reaches the frame.
func (u *Unwinder) backward(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, ok bool) {
	tries := 0
	for i := range uint64(maxWords) {
		at := regs.GPR[context.RSP] + 8*i
		ra, ok := mem.Word(at)
		if !ok || tries == maxEntries {
			break
		}
		if _, calls := u.calls(m, regs.RIP, ra); !calls {
			continue
		}
		tries++
		if u.entered(m, regs, at, mem, &to) {
			return to, true
		}
	}
	return to, false
}

// maxFunction bounds the length of a function.
const maxFunction = 1 << 16

// calls returns the function that the call before ra called directly, if ip may be in it.
func (u *Unwinder) calls(m *module.Module, ip, ra uint64) (fn uint64, ok bool) {
	if ra-m.Start > m.End-m.Start {
		return 0, false
	}
	b := m.Bytes(ra-5, 5)
	if len(b) < 5 || b[0] != 0xe8 {
		return 0, false
	}
	fn = ra + signed32(b[1:])
	return fn, fn-m.Start < m.End-m.Start && fn <= ip && ip-fn < maxFunction
}

// entered executes, from its start, the function whose return address is at the stack address at. It reports
// whether the function reaches the frame, and sets to to the caller. The call before the return address
// identifies the function, or the image does if it exports the frame's function.
func (u *Unwinder) entered(m *module.Module, regs *Registers, at uint64,
	mem *memory.Window, to *Registers) bool {
	f := &u.follower
	ra, ok := mem.Word(at)
	fn, named := u.calls(m, regs.RIP, ra)
	if !named {
		fn, named = m.Function(regs.RIP)
	}
	if !ok || !named {
		return false
	}
	f.left = max(f.left, maxEntered)
	f.enter(m, fn, at)
	f.goal, f.sp, f.fp, f.fpOK = regs.RIP, regs.GPR[context.RSP],
		regs.GPR[context.RBP], known(regs, context.RBP)
	u.follow()
	if f.ok {
		*to = f.caller(ra, at, at, regs, mem)
	}
	return f.ok
}

// enter starts a run at a function's first byte, with its return address at at.
func (f *follower) enter(m *module.Module, fn, at uint64) {
	e := f.begin(m, fn)
	for reg := range e.regs {
		if f.kept>>reg&1 != 0 {
			e.regs[reg] = value64{uint64(reg), entryValue}
		}
	}
	e.regs[context.RSP] = value64{at, knownValue}
	f.mem = nil
}

// For a function whose start is unknown: how far back to search for it, and the stack pointer at entry in the
// run that measures its frame.
const (
	maxBack = 1 << 10
	entrySP = 1<<40 + 8 // as after a call with an aligned stack: entrySP+8 is a multiple of 16
)

// fromStart measures the frame of a function that never returns and that no word of the stack identifies: it
// tries each place before ip where a function may begin. The word that it finds must be a return address.
func (u *Unwinder) fromStart(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, ok bool) {
	f := &u.follower
	f.left = maxFollow
	for fn := regs.RIP &^ 15; fn > regs.RIP-maxBack && f.left > 0; fn -= 16 {
		if before := m.Bytes(fn-1, 1); len(before) == 0 || bytes.IndexByte(beforeBegin, before[0]) < 0 {
			continue
		}
		f.enter(m, fn, entrySP)
		f.goal, f.measure = regs.RIP, true
		u.follow()
		if !f.ok {
			continue
		}
		at := regs.GPR[context.RSP] + entrySP - f.found.regs[context.RSP].v
		if ra, ok := mem.Word(at); ok && at >= regs.GPR[context.RSP] && u.afterCall(ra) {
			return f.caller(ra, at, entrySP, regs, mem), true
		}
	}
	return to, false
}

// measureFrame finds the frame pointer of a frame whose sp and ip alone are known, as those of a blocked
// thread. A run from the function's start measures how far the stack pointer is below the return address.
// ok is false if no return address is there, or if the distance is not the same in each call: the function
// uses alloca, or it aligns its stack, so that the distance depends on where the stack begins.
func (u *Unwinder) measureFrame(r Rule, s *unwind.State, mem *memory.Window) (bp uint64, ok bool) {
	if r.Module() < 0 || u.table.At(r.Module()).PE != nil {
		return 0, false
	}
	m, regs := u.table.At(r.Module()), &s.Regs.AMD64
	f, why := m.CFI.Find(s.Address().Lookup() - m.Bias)
	if why != cfi.None || u.machine.Row(m.CFI, f.Lo, &u.row) != cfi.None ||
		u.row.CFA.Kind != cfi.RegisterOffset ||
		u.row.CFA.Reg != dwarfRSP || u.row.CFA.Off != 8 || !steady(m, f.Lo+m.Bias, f.Hi-f.Lo) {
		return 0, false
	}
	depth, ok := u.depth(m, f.Lo+m.Bias, regs.RIP, entrySP)
	moved, ok2 := u.depth(m, f.Lo+m.Bias, regs.RIP, entrySP+16)
	at := regs.GPR[context.RSP] + depth
	ra, read := mem.Word(at)
	if !ok || !ok2 || depth != moved || depth > maxFrame || !read || !u.afterCall(ra) {
		return 0, false
	}
	return at + 8 - r.offset(), true
}

// maxFrame bounds the size of a measured frame, bytes.
const maxFrame = 1 << 30

// steady reports whether no instruction of a function makes the stack pointer unknown, as alloca does. It
// reports false if the function is longer than maxFunction, or an instruction cannot be decoded.
func steady(m *module.Module, fn, size uint64) bool {
	var e emulator
	for at := uint64(0); at < size; {
		in := x86.Decode(m.Bytes(fn+at, x86.MaxInsn))
		if in.Size == 0 || size > maxFunction {
			return false
		}
		e.n = 0
		e.set(context.RSP, value64{entrySP, knownValue})
		e.set(context.RBP, value64{entrySP, knownValue})
		e.run(&in, nil)
		if e.get(context.RSP).kind != knownValue {
			return false
		}
		at += uint64(in.Size)
	}
	return true
}

// depth runs a function from its start to ip, and returns the distance of the stack pointer to the return
// address.
func (u *Unwinder) depth(m *module.Module, fn, ip, sp uint64) (bytes uint64, ok bool) {
	f := &u.follower
	f.left = maxEntered
	f.enter(m, fn, sp)
	f.goal, f.measure = ip, true
	u.follow()
	return sp - f.found.regs[context.RSP].v, f.ok
}

// beforeBegin are the bytes before a function's first: padding, or a return.
var beforeBegin = []byte{0x90, 0xcc, 0xc3, 0}

// caller returns the caller of a function that was executed from its start. The return address ra is at the
// stack address at; in the run, it was at ran. Preserved registers are read from where the function saved
// them, or are unchanged.
func (f *follower) caller(ra, at, ran uint64, regs *Registers, mem *memory.Window) (to Registers) {
	to.RIP, to.Known, to.GPR[context.RSP] = ra, 1<<context.RSP, at+8
	for reg := range f.found.regs {
		if f.kept>>reg&1 == 0 || reg == context.RSP {
			continue
		}
		v, ok := regs.GPR[reg], known(regs, reg) && f.found.regs[reg] == value64{uint64(reg), entryValue}
		for i := range f.found.stores[:f.found.n] {
			if s := &f.found.stores[i]; s.v == (value64{uint64(reg), entryValue}) {
				v, ok = mem.Word(s.at + at - ran)
				break
			}
		}
		if ok {
			to.GPR[reg] = v
			to.Known |= 1 << reg
		}
	}
	return to
}
