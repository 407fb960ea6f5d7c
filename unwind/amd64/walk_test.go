package amd64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

const jitIP = jitLo + 0x123

// chain lays n frames of 16 bytes over each other, all of function 0 (CFA =
// RSP+16), and ends in last.
func chain(s *stack, n int, last uint64) {
	for i := range n {
		ra := at(0)
		if i == n-1 {
			ra = last
		}
		s.set(sp0+16*uint64(i)+8, ra)
	}
}

func chainTable(tb testing.TB) *Unwinder {
	return unwinder(makeTable(tb, 1, fn{program: []byte{0x0e, 16, 0x80 | 3, 2}},
		fn{program: []byte{0x07, 16}}))
}

// However a walk ends, the registers are those of the frame at which it ended.
// Recursion, with the same return address repeatedly, does not end a walk.
func TestWalkEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		last   uint64
		out    int
		bounds unwind.Bounds
		n      int
		stop   unwind.Stop
		ip     uint64
		sp     uint64
	}{
		{"managed", jitIP, 64, unwind.Bounds{}, 40, unwind.Managed, jitIP, sp0 + 640},
		{"end of stack", at(1), 64, unwind.Bounds{}, 41, unwind.EndOfStack, at(1), sp0 + 640},
		{"zero return address", 0, 64, unwind.Bounds{}, 40, unwind.NullReturn, at(0), sp0 + 624},
		{"zero return address at the high end", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 640}, 40,
			unwind.EndOfStack, at(0), sp0 + 624},
		{"zero return address a page below it", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 624 + 4096},
			40, unwind.EndOfStack, at(0), sp0 + 624},
		{"zero return address farther below it", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 624 + 4104},
			40, unwind.NullReturn, at(0), sp0 + 624},
		{"nothing known there", 0x4242, 64, unwind.Bounds{}, 41, unwind.NoInfo, 0x4242, sp0 + 640},
		{"a module without unwind data there", at(2), 64, unwind.Bounds{}, 41,
			unwind.NoInfo, at(2), sp0 + 640},
		{"buffer full", jitIP, 10, unwind.Bounds{}, 10, unwind.BufferFull, at(0), sp0 + 160},
		{"no buffer", jitIP, 0, unwind.Bounds{}, 0, unwind.BufferFull, at(0), sp0},
		{"limit", jitIP, 64, unwind.Bounds{MaxSteps: 7}, 7, unwind.Limit, at(0), sp0 + 112},
		{"out of the stack", jitIP, 64, unwind.Bounds{Low: stackLow, High: sp0 + 100}, 7,
			unwind.OutOfStack, at(0), sp0 + 96},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s := chainTable(t), newStack()
			chain(s, 40, c.last)
			r := start(at(0), sp0)
			out := make([]unwind.Frame, c.out)
			n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, s.window(), &c.bounds, out)
			must.True(t, n == c.n && stop == c.stop && r.RIP == c.ip && r.SP() == c.sp && exact == (n == 0),
				"%d frames, %v, exact %v, at %#x/%#x; want %d, %v, %#x/%#x", n, stop, exact, r.RIP, r.SP(),
				c.n, c.stop, c.ip, c.sp)
			for i, f := range out[:n] {
				trust := unwind.TrustCFI
				if i == 0 {
					trust = unwind.TrustContext
				} else if f.Module < 0 {
					trust = unwind.TrustOutside
				}
				expect.True(t, f.SP == sp0+16*uint64(i) && f.Trust == trust && f.Exact == (i == 0),
					"frame %d: %+v", i, f)
			}
		})
	}
}

// A thread interrupted in managed code has no unmanaged frame to walk.
func TestWalkFromManaged(t *testing.T) {
	u, r := chainTable(t), start(jitIP, sp0)
	before := r
	var out [4]unwind.Frame
	n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, newStack().window(), nil, out[:])
	expect.True(t, n == 0 && exact && stop == unwind.Managed && r == before,
		"%d frames, exact %v, %v", n, exact, stop)
}

// A return hook with unknown code: its call frame information (CFA = RSP+24 here)
// gives a CFA one word too high. The word in the return address's place is the
// caller's data, and the true address is below it. Without such return hooks, the word
// is used as it is.
func TestHijack(t *testing.T) {
	for _, c := range []struct {
		name      string
		above     uint64 // at CFA-8
		below     uint64 // at CFA-16
		ip, sp    uint64
		wantTrust unwind.Trust
		stop      unwind.Stop
		n         int
	}{
		{"no such hooks", 0x33, jitIP, 0x33, sp0 + 24, unwind.TrustCFI, unwind.NoInfo, 2},
		{"hijacked", 0x33, jitIP, jitIP, sp0 + 16, unwind.TrustCFI, unwind.Managed, 1},
		{"hijacked, the word above happens to be 0", 0, jitIP, jitIP, sp0 + 16,
			unwind.TrustCFI, unwind.Managed, 1},
		{"not hijacked: the return address is managed", jitIP + 64, jitIP, jitIP + 64, sp0 + 24,
			unwind.TrustCFI, unwind.Managed, 1},
		{"not hijacked: the return address is in a module", at(1), jitIP, at(1), sp0 + 24,
			unwind.TrustCFI, unwind.EndOfStack, 2},
		{"garbage, and nothing managed below", 0x33, 0x44, 0x33, sp0 + 24, unwind.TrustCFI, unwind.NoInfo, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := unwinder(makeTable(t, 1, fn{program: []byte{0x0e, 24, 0x80 | 3, 3}},
				fn{program: []byte{0x07, 16}}))
			if c.name != "no such hooks" {
				u.SetReturnHooks([]unwind.ReturnHook{{Arch: context.ArchAMD64, Off: -8}})
			}
			s, r := newStack(), start(at(0), sp0)
			s.set(sp0+16, c.above)
			s.set(sp0+8, c.below)
			var out [8]unwind.Frame
			n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, s.window(), nil, out[:])
			expect.True(t, n == c.n && stop == c.stop && !exact && r.RIP == c.ip && r.SP() == c.sp &&
				out[0].CFA == c.sp,
				"%d frames, %v, exact %v, at %#x/%#x, CFA %#x", n, stop, exact, r.RIP, r.SP(), out[0].CFA)
			expect.True(t, u.by == c.wantTrust && r.GPR[context.RBX] == s.word(sp0),
				"trust %v, rbx %#x", u.by, r.GPR[context.RBX])
			one := start(at(0), sp0)
			var f unwind.Frame
			_, stop = stepOf(u, &one, true, s.window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && one.RIP == c.ip && f == out[0],
				"Step: %v at %#x, %+v", stop, one.RIP, f)
		})
	}
}

// Only a step by call frame information can be mistaken for the hijack stub's.
func TestNoHijackInLinkageTable(t *testing.T) {
	u := unwinder(codeTable(t, []byte{0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0}))
	s, r := newStack(), start(codeLo, sp0)
	s.set(sp0, 0x33)
	s.set(sp0-8, jitIP)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && r.RIP == 0x33, "%v at %#x", stop, r.RIP)
}

// The frame pointer is followed only if guesses are allowed and all checks of it
// succeed. The frame that it finds is doubtful, and so are all its callers.
func TestFramePointer(t *testing.T) {
	const fp = sp0 + 0x40
	for _, c := range []struct {
		name   string
		fp, ra uint64
		known  bool
		bounds unwind.Bounds
		stop   unwind.Stop
	}{
		{"good", fp, at(0), true, unwind.Bounds{Guess: true}, unwind.StopNone},
		{"at the stack pointer", sp0, at(0), true, unwind.Bounds{Guess: true}, unwind.StopNone},
		{"managed return address", fp, jitIP, true, unwind.Bounds{Guess: true}, unwind.StopNone},
		{"not allowed", fp, at(0), true, unwind.Bounds{}, unwind.NoInfo},
		{"unknown", fp, at(0), false, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"not aligned", fp + 4, at(0), true, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"below the stack pointer", sp0 - 16, at(0), true, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"outside the bounds", fp, at(0), true,
			unwind.Bounds{Low: stackLow, High: fp + 8, Guess: true}, unwind.NoInfo},
		{"outside the window", stackLow + stackSize - 8, 0, true, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"wrapping", ^uint64(7), 0, true, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"return address is no code", fp, 0x1234, true, unwind.Bounds{Guess: true}, unwind.NoInfo},
		{"return address 0", fp, 0, true, unwind.Bounds{Guess: true}, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s := chainTable(t), newStack()
			r := start(0x4242, sp0)
			r.GPR[context.RBP] = c.fp
			if !c.known {
				r.Known &^= 1 << context.RBP
			}
			if c.fp-stackLow < stackSize-8 {
				s.set(c.fp+8, c.ra)
			}
			before := r
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.window(), &c.bounds, &f)
			must.Equal(t, stop, c.stop, "stop")
			if stop != unwind.StopNone {
				expect.Equal(t, r, before, "a failed step changed the registers")
				return
			}
			expect.True(t, r.RIP == c.ra && r.SP() == c.fp+16 && r.FP() == s.word(c.fp) &&
				r.Known == 1<<context.RSP|1<<context.RBP,
				"caller %#x/%#x fp %#x known %#x", r.RIP, r.SP(), r.FP(), r.Known)
			expect.Equal(t, u.by, unwind.TrustFramePointer, "trust")
		})
	}
}

func TestDoubtStays(t *testing.T) {
	u, s := chainTable(t), newStack()
	r := start(0x4242, sp0)
	r.GPR[context.RBP] = sp0 + 16
	s.set(sp0+24, at(0))
	s.set(sp0+40, at(1))
	var out [8]unwind.Frame
	n, _, stop := walkOf(u, &r, true, unwind.TrustContext, s.window(), &unwind.Bounds{Guess: true}, out[:])
	expect.True(t, n == 3 && stop == unwind.EndOfStack && out[1].Trust.Doubtful() && out[2].Trust.Doubtful(),
		"%d frames, %v, %v %v", n, stop, out[1].Trust, out[2].Trust)
}

// Stacks made to trap a walker end in bounded time with a reason.
func TestHostileStacks(t *testing.T) {
	cfaFromRBP := fn{program: []byte{0x0c, 6, 16, 0x80 | 6, 2}}
	same := fn{program: []byte{0x0c, 10, 0}} // CFA = R10, side rule
	loop := fn{program: cat([]byte{0x14, 7, 1}, []byte{0x09, 16, 0, 0x08, 0}), signal: true}
	for _, c := range []struct {
		name   string
		fns    []fn
		ip, bp uint64
		fill   func(s *stack)
		mem    *memory.Window
		guess  bool
		n      int // 0: any
		stop   unwind.Stop
	}{
		{name: "frame pointer to itself", fns: []fn{cfaFromRBP}, ip: at(0), bp: sp0,
			fill: func(s *stack) { s.set(sp0, sp0); s.set(sp0+8, at(0)) }, stop: unwind.NoProgress},
		{name: "frame pointers in a ring", fns: []fn{cfaFromRBP}, ip: at(0), bp: sp0, fill: func(s *stack) {
			s.set(sp0, sp0+32)
			s.set(sp0+8, at(0))
			s.set(sp0+32, sp0)
			s.set(sp0+40, at(0))
		}, stop: unwind.NoProgress},
		{name: "frame pointers in a ring, guessed", ip: 0x4242, bp: sp0, guess: true, fill: func(s *stack) {
			s.set(sp0, sp0+32)
			s.set(sp0+8, jitIP)
			s.set(sp0+32, sp0)
			s.set(sp0+40, jitIP)
		}, stop: unwind.Managed},
		{name: "CFA that does not grow", fns: []fn{same}, ip: at(0), stop: unwind.NoProgress},
		{name: "CFA that is the stack pointer", fns: []fn{{program: []byte{0x0e, 0}}}, ip: at(0),
			n: 1, stop: unwind.NoProgress},
		{name: "a signal frame above itself", fns: []fn{loop}, ip: at(0), stop: unwind.NoProgress},
		{name: "empty window", fns: []fn{{}}, ip: at(0), mem: memory.New(), stop: unwind.Unreadable},
		{name: "zero window", fns: []fn{{}}, ip: at(0), mem: &memory.Window{}, stop: unwind.Unreadable},
		{name: "instruction pointer 0", fns: []fn{{}}, ip: 0, stop: unwind.NoInfo},
		{name: "highest instruction pointer", fns: []fn{{}}, ip: ^uint64(0),
			guess: true, stop: unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(makeTable(t, 1, c.fns...)), newStack(), start(c.ip, sp0)
			r.GPR[context.RBP], r.GPR[context.R10], r.GPR[context.RAX] = c.bp, sp0, at(0)
			s.set(sp0-8, at(0))
			if c.fill != nil {
				c.fill(s)
			}
			mem := s.window()
			if c.mem != nil {
				mem = c.mem
			}
			out := make([]unwind.Frame, 5000)
			n, _, stop := walkOf(u, &r, true, unwind.TrustContext, mem, &unwind.Bounds{Guess: c.guess}, out)
			if stop != c.stop || n > unwind.DefaultMaxSteps || c.n != 0 && n != c.n {
				t.Errorf("%d frames, %v, want %v", n, stop, c.stop)
			}
			want := int32(u.table.Find(c.ip))
			expect.True(t, out[0].Module == want, "module %d, want %d", out[0].Module, want)
		})
	}
}

// Signal frames may go down the stack, so only the limit ends a chain of them.
func TestSignalChainIsLimited(t *testing.T) {
	ops := []byte{cfi.DW_OP_drop, cfi.DW_OP_breg0 + 7, 0x78} // RSP = RSP-8
	program := cat(expr(0x16, 7, ops...), []byte{0x09, 16, 0, 0x08, 0})
	u := unwinder(makeTable(t, 1, fn{program: program, signal: true}))
	r := start(at(0), stackLow+stackSize-8)
	r.GPR[context.RAX] = at(0)
	out := make([]unwind.Frame, 300)
	n, _, stop := walkOf(u, &r, true, unwind.TrustContext, newStack().window(),
		&unwind.Bounds{MaxSteps: 200}, out)
	expect.True(t, n == 200 && stop == unwind.Limit, "%d frames, %v", n, stop)
}

// Random stacks and registers over real rules: bounded, progressing, and the
// same with and without the cache.
func TestRandomStacks(t *testing.T) {
	var fns []fn
	for _, e := range effects {
		fns = append(fns, fn{program: e.program})
	}
	table := makeTable(t, 1, fns...)
	u, plain := unwinder(table), unwinder(table)
	plain.DisableCache(true)
	rnd := rand.New(rand.NewPCG(1, 2))
	stops := map[unwind.Stop]int{}
	for range 2000 {
		s := newStack()
		for i := uint64(0); i < stackSize; i += 8 {
			s.set(stackLow+i, randomWord(rnd, len(fns)))
		}
		r := start(randomWord(rnd, len(fns)), stackLow+rnd.Uint64N(stackSize))
		for i := range r.GPR {
			if i != context.RSP {
				r.GPR[i] = randomWord(rnd, len(fns))
			}
		}
		stops[agree(t, u, plain, r, s.window())]++
	}
	t.Log(stops)
}

func randomWord(rnd *rand.Rand, fns int) uint64 {
	switch rnd.IntN(4) {
	case 0:
		return rnd.Uint64()
	case 1:
		return stackLow + rnd.Uint64N(stackSize)&^7
	case 2:
		return jitLo + rnd.Uint64N(jitHi-jitLo)
	}
	return textBias + textLo + rnd.Uint64N(uint64(fns)*fnSize)
}

func agree(t *testing.T, u, plain *Unwinder, r Registers, mem *memory.Window) unwind.Stop {
	t.Helper()
	b := unwind.Bounds{Low: stackLow, High: stackLow + stackSize, MaxSteps: 64, Guess: true}
	r2 := r
	var out, out2 [80]unwind.Frame
	n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, mem, &b, out[:])
	n2, exact2, stop2 := walkOf(plain, &r2, true, unwind.TrustContext, mem, &b, out2[:])
	expect.True(t, n == n2 && exact == exact2 && stop == stop2 && out == out2 && r == r2,
		"with cache %d frames, %v; without %d, %v", n, stop, n2, stop2)
	for i := 1; i < n; i++ {
		expect.True(t, out[i].SP >= out[i-1].SP,
			"frame %d: SP fell from %#x to %#x", i, out[i-1].SP, out[i].SP)
	}
	return stop
}

func TestNoAllocations(t *testing.T) {
	u, s := chainTable(t), newStack()
	chain(s, 40, jitIP)
	mem := s.window()
	out := make([]unwind.Frame, 64)
	check := func(name string, run func()) {
		expect.Equal(t, testing.AllocsPerRun(100, run), 0, "%s: allocations", name)
	}
	check("Step", func() {
		r := start(at(0), sp0)
		stepOf(u, &r, true, mem, nil, &out[0])
	})
	check("Walk", func() {
		r := start(at(0), sp0)
		walkOf(u, &r, true, unwind.TrustContext, mem, nil, out)
	})
	check("Walk cold", func() {
		u.flush()
		r := start(at(0), sp0)
		walkOf(u, &r, true, unwind.TrustContext, mem, nil, out)
	})
}

// Walks of recorded stacks do not allocate either, with side rules and code
// without unwind data.
func TestNoAllocationsRecorded(t *testing.T) {
	n := 0
	eachSnapshot(t, func(r *recorded) {
		if n++; n%10 != 0 && r.s.Class == "cfi_exact" {
			return
		}
		var out [256]unwind.Frame
		b := unwind.Bounds{Guess: true}
		a := testing.AllocsPerRun(2, func() {
			regs := r.reg
			r.u.flush()
			walkOf(r.u, &regs, true, unwind.TrustContext, r.mem, &b, out[:])
		})
		expect.True(t, a == 0, "%s: %v allocations", r.s.ID, a)
	})
}
