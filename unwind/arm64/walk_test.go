package arm64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// chain lays n frames of 16 bytes over each other, all of function 0, and ends
// in last.
func chain(s *stack, n int, last uint64) {
	for i := range n {
		lr := at(0)
		if i == n-1 {
			lr = last
		}
		s.set(sp0+16*uint64(i)+8, lr)
	}
}

func chainTable(tb testing.TB) *Unwinder {
	return unwinder(makeTable(tb, nil, fn{program: []byte{0x0e, 16, 0x9d, 2, 0x9e, 1}},
		fn{program: []byte{0x07, 30}}))
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
		pc     uint64
		sp     uint64
	}{
		{"managed", jitIP, 64, unwind.Bounds{}, 40, unwind.Managed, jitIP, sp0 + 640},
		{"signed managed", 0x57<<48 | jitIP, 64, unwind.Bounds{}, 40, unwind.Managed, jitIP, sp0 + 640},
		{"end of stack", at(1), 64, unwind.Bounds{}, 41, unwind.EndOfStack, at(1), sp0 + 640},
		{"zero return address", 0, 64, unwind.Bounds{}, 40, unwind.NullReturn, at(0), sp0 + 624},
		{"zero return address at the high end", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 640}, 40,
			unwind.EndOfStack, at(0), sp0 + 624},
		{"zero return address a page below it", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 624 + 4096},
			40, unwind.EndOfStack, at(0), sp0 + 624},
		{"zero return address farther below it", 0, 64, unwind.Bounds{Low: stackLow, High: sp0 + 624 + 4104},
			40, unwind.NullReturn, at(0), sp0 + 624},
		{"nothing known there", 0x4240, 64, unwind.Bounds{}, 41, unwind.NoInfo, 0x4240, sp0 + 640},
		{"no unwind data there", at(2), 64, unwind.Bounds{}, 41, unwind.NoInfo, at(2), sp0 + 640},
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
			must.True(t, n == c.n && stop == c.stop && r.PC == c.pc && r.Sp == c.sp && exact == (n == 0),
				"%d frames, %v, exact %v, at %#x/%#x; want %d, %v, %#x/%#x", n, stop, exact, r.PC, r.Sp, c.n,
				c.stop, c.pc, c.sp)
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

// The frame pointer is followed only if guesses are allowed and all checks of it
// succeed. The frame that it finds is doubtful, and so are all its callers.
func TestFramePointer(t *testing.T) {
	const fp = sp0 + 0x40
	guess := unwind.Bounds{Guess: true}
	for _, c := range []struct {
		name   string
		fp, lr uint64
		known  bool
		bounds unwind.Bounds
		stop   unwind.Stop
	}{
		{"good", fp, at(0), true, guess, unwind.StopNone},
		{"at SP", sp0, at(0), true, guess, unwind.StopNone},
		{"managed return address", fp, jitIP, true, guess, unwind.StopNone},
		{"signed return address", fp, 0x57<<48 | at(0), true, guess, unwind.StopNone},
		{"not allowed", fp, at(0), true, unwind.Bounds{}, unwind.NoInfo},
		{"unknown", fp, at(0), false, guess, unwind.NoInfo},
		{"not aligned", fp + 4, at(0), true, guess, unwind.NoInfo},
		{"below SP", sp0 - 16, at(0), true, guess, unwind.NoInfo},
		{"outside the bounds", fp, at(0), true,
			unwind.Bounds{Low: stackLow, High: fp + 8, Guess: true}, unwind.NoInfo},
		{"outside the window", stackLow + stackSize - 8, 0, true, guess, unwind.NoInfo},
		{"wrapping", ^uint64(7), 0, true, guess, unwind.NoInfo},
		{"return address is no code", fp, 0x1234, true, guess, unwind.NoInfo},
		{"return address between instructions", fp, at(0) + 2, true, guess, unwind.NoInfo},
		{"return address 0", fp, 0, true, guess, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s := chainTable(t), newStack()
			r := start(0x4240, sp0)
			r.X[29] = c.fp
			if !c.known {
				r.Known &^= 1 << 29
			}
			if c.fp-stackLow < stackSize-8 {
				s.set(c.fp+8, c.lr)
			}
			before := r
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.window(), &c.bounds, &f)
			must.Equal(t, stop, c.stop, "stop")
			if stop != unwind.StopNone {
				expect.Equal(t, r, before, "a failed step changed the registers")
				return
			}
			expect.True(t, r.PC == c.lr&(1<<48-1) && r.Sp == c.fp+16 && r.X[29] == s.word(c.fp) &&
				r.Known == 1<<29|1<<30 && f.CFA == 0,
				"caller %#x/%#x fp %#x known %#x CFA %#x", r.PC, r.Sp, r.X[29], r.Known, f.CFA)
			expect.Equal(t, u.by, unwind.TrustFramePointer, "trust")
		})
	}
}

func TestDoubtStays(t *testing.T) {
	u, s := chainTable(t), newStack()
	r := start(0x4240, sp0)
	r.X[29] = sp0 + 16
	s.set(sp0+24, at(0))
	s.set(sp0+40, at(1))
	var out [8]unwind.Frame
	n, _, stop := walkOf(u, &r, true, unwind.TrustContext, s.window(), &unwind.Bounds{Guess: true}, out[:])
	expect.True(t, n == 3 && stop == unwind.EndOfStack && out[1].Trust.Doubtful() && out[2].Trust.Doubtful(),
		"%d frames, %v, %v %v", n, stop, out[1].Trust, out[2].Trust)
}

// Stacks made to trap a walker end in bounded time with a reason.
func TestHostileStacks(t *testing.T) {
	fromFP := fn{program: []byte{0x0c, 29, 16, 0x9d, 2, 0x9e, 1}}
	same := fn{program: []byte{0x0c, 10, 0, 0x9e, 1}}
	for _, c := range []struct {
		name  string
		fns   []fn
		pc    uint64
		fp    uint64
		fill  func(s *stack)
		mem   *memory.Window
		guess bool
		stop  unwind.Stop
	}{
		{name: "frame record to itself", fns: []fn{fromFP}, pc: at(0), fp: sp0,
			fill: func(s *stack) { s.set(sp0, sp0); s.set(sp0+8, at(0)) }, stop: unwind.NoProgress},
		{name: "frame records in a ring", fns: []fn{fromFP}, pc: at(0), fp: sp0, fill: func(s *stack) {
			s.set(sp0, sp0+32)
			s.set(sp0+8, at(0))
			s.set(sp0+32, sp0)
			s.set(sp0+40, at(0))
		}, stop: unwind.NoProgress},
		{name: "frame records in a ring, guessed", fns: []fn{{}}, pc: 0x4240, fp: sp0,
			guess: true, fill: func(s *stack) {
				s.set(sp0, sp0+32)
				s.set(sp0+8, codeLo+0x400)
				s.set(sp0+32, sp0)
				s.set(sp0+40, codeLo+0x400)
			}, stop: unwind.NoInfo},
		{name: "CFA that does not grow", fns: []fn{same}, pc: at(0), stop: unwind.NoProgress},
		{name: "signal frame to itself", fns: []fn{{}}, pc: sp0 - 16, fill: func(s *stack) {
			s.set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.set(sp0+sigSP, sp0)
			s.set(sp0+sigPC, sp0-12)
		}, stop: unwind.NoProgress},
		{name: "signal frames up and down", fns: []fn{{}}, pc: sp0 - 16, fill: func(s *stack) {
			s.set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.set(sp0+sigSP, sp0+0x1000)
			s.set(sp0+sigPC, sp0-12)
			s.set(sp0+0x1000+sigSP, sp0)
			s.set(sp0+0x1000+sigPC, sp0-12)
		}, stop: unwind.Limit},
		{name: "empty window", fns: []fn{{program: []byte{0x0e, 16, 0x9e, 1}}}, pc: at(0),
			mem: memory.New(), stop: unwind.Unreadable},
		{name: "zero window", fns: []fn{{program: []byte{0x0e, 16, 0x9e, 1}}}, pc: at(0),
			mem: &memory.Window{}, stop: unwind.Unreadable},
		{name: "pc 0", fns: []fn{{}}, stop: unwind.NoInfo},
		{name: "highest pc", fns: []fn{{}}, pc: ^uint64(0), guess: true, stop: unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(makeTable(t, nil, c.fns...)), newStack(), start(c.pc, sp0)
			r.X[29], r.X[10] = c.fp, sp0
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
			expect.True(t, stop == c.stop && n <= unwind.DefaultMaxSteps,
				"%d frames, %v, want %v", n, stop, c.stop)
		})
	}
}

// Random stacks and registers over real rules and code: bounded, progressing,
// and the same with and without the cache.
func TestRandomStacks(t *testing.T) {
	var fns []fn
	for _, e := range cfiEffects {
		fns = append(fns, fn{program: e.program})
	}
	code := []uint32{insPLT0Push, 0x90000110, 0xf9400211, 0x91000210, insBRX17, 0xa9bf7bfd, 0x910003fd,
		0x94000010, 0xa8c17bfd, 0xd65f03c0, insMovX8Sigreturn, insSVC}
	table := makeTable(t, code, fns...)
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
		for i := range r.X {
			r.X[i] = randomWord(rnd, len(fns))
		}
		stops[agree(t, u, plain, r, s.window())]++
	}
	t.Log(stops)
}

func randomWord(rnd *rand.Rand, fns int) uint64 {
	switch rnd.IntN(6) {
	case 0:
		return rnd.Uint64()
	case 1:
		return stackLow + rnd.Uint64N(stackSize)&^7
	case 2:
		return jitLo + rnd.Uint64N(jitHi-jitLo)
	case 3:
		return codeLo + rnd.Uint64N(64)&^3
	}
	return textBias + textLo + rnd.Uint64N(uint64(fns)*fnSize)&^3
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
		if out[i].SP < out[i-1].SP && out[i-1].Kind != unwind.KindSignal {
			t.Errorf("frame %d: SP fell from %#x to %#x", i, out[i-1].SP, out[i].SP)
		}
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
	check("unwind codes", func() {
		r := start(at(0), sp0)
		leaveOf(&r, true, func(s *unwind.State) (bool, unwind.Stop) {
			return u.runCodes([]byte{0xc8, 0x02, 0xe1, 0x81, 0xe4}, s, mem, &unbounded, &out[0])
		})
	})
}

// Walks of recorded stacks do not allocate either, with expressions, trampolines,
// and code without unwind data.
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
