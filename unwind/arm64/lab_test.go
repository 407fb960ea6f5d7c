package arm64

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// labCode is code without unwind data, of each kind that the walker knows.
var labCode = []uint32{insPLT0Push, 0x90000110, 0xf9400211, 0x91000210, insBRX17, 0xa9bf7bfd, 0x910003fd,
	0x94000010, 0xa8c17bfd, 0xd65f03c0, insMovX8Sigreturn, insSVC}

var lab = walktest.Lab{
	Arch: context.ArchARM64,
	New: func(tb testing.TB, fns ...fn) walktest.Walker {
		return unwinder(makeTable(tb, labCode, fns...))
	},
	Start: func(pc, sp uint64) context.Registers { return context.FromARM64(start(pc, sp)) },
	Plain: fn{Program: []byte{0x0e, 16, 0x9d, 2, 0x9e, 1}},
	Last:  fn{Program: []byte{0x07, 30}},
	ByFP:  fn{Program: []byte{0x0c, 29, 16, 0x9d, 2, 0x9e, 1}},
	Side:  fn{Program: []byte{0x0c, 10, 0, 0x9e, 1}},
	Big: fn{Program: []byte{0x0e, 64, 0x9d, 8, 0x9e, 7, 0x93, 6, 0x94, 5,
		0x95, 4, 0x96, 3, 0x97, 2, 0x98, 1}},
	BigReturn: 8,
	FP:        1 << 29,
	Guessed:   1<<29 | 1<<30,
	Hostile: []walktest.Hostile{
		{Name: "frame records in a ring, guessed", Fns: []fn{{}}, IP: 0x4240, FP: sp0, Guess: true,
			Fill: walktest.Ring(codeLo + 0x400), Stop: unwind.NoInfo},
		{Name: "signal frame to itself", Fns: []fn{{}}, IP: sp0 - 16, Fill: func(s *stack) {
			s.Set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.Set(sp0+sigSP, sp0)
			s.Set(sp0+sigPC, sp0-12)
		}, Stop: unwind.NoProgress},
		{Name: "signal frames up and down", Fns: []fn{{}}, IP: sp0 - 16, Fill: func(s *stack) {
			s.Set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.Set(sp0+sigSP, sp0+0x1000)
			s.Set(sp0+sigPC, sp0-12)
			s.Set(sp0+0x1000+sigSP, sp0)
			s.Set(sp0+0x1000+sigPC, sp0-12)
		}, Stop: unwind.Limit},
	},
	Word: func(rnd *rand.Rand) uint64 {
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
		return textBias + textLo + rnd.Uint64N(uint64(len(cfiEffects))*fnSize)&^3
	},
	Cache: walktest.Cache{Ways: ways, Apart: 1 << 30,
		Look: func(w walktest.Walker, ip uint64) bool {
			return w.(*Unwinder).lookup(unwind.Instruction(ip)).Managed()
		},
		Kept: func(w walktest.Walker) (at []uint64) {
			for _, e := range w.(*Unwinder).cache[:] {
				if e.rule.kind != RuleNone {
					at = append(at, e.addr)
				}
			}
			return at
		}},
}

// TestWalks runs the tests that both architectures share.
func TestWalks(t *testing.T) {
	for _, e := range cfiEffects {
		lab.Real = append(lab.Real, fn{Program: e.program})
	}
	lab.Run(t)
}

// TestUnwindCodesDoNotAllocate is the part of the allocation tests that only this architecture has.
func TestUnwindCodesDoNotAllocate(t *testing.T) {
	u, mem, f := New(), newStack().Window(), unwind.Frame{}
	expect.Equal(t, testing.AllocsPerRun(100, func() {
		r := start(at(0), sp0)
		leaveOf(&r, true, func(s *unwind.State) (bool, unwind.Stop) {
			return u.runCodes([]byte{0xc8, 0x02, 0xe1, 0x81, 0xe4}, s, mem, &unbounded, &f)
		})
	}), 0, "allocations")
}

func BenchmarkWalk(b *testing.B)     { lab.BenchmarkWalk(b, 100) }
func BenchmarkRecorded(b *testing.B) { lab.BenchmarkRecorded(b) }
func BenchmarkGuess(b *testing.B)    { lab.BenchmarkGuess(b) }

const (
	textBias  = walktest.TextBias
	textLo    = walktest.TextLo
	fnSize    = walktest.FnSize
	codeLo    = textBias + 0x8000 // code without unwind data
	codeCall  = codeLo + 0x804    // a believable return address
	stackLow  = walktest.StackLow
	stackSize = walktest.StackSize
	sp0       = walktest.SP0
	jitLo     = walktest.JitLo
	jitHi     = walktest.JitHi
	jitIP     = walktest.JitIP
)

type (
	fn    = walktest.Fn
	stack = walktest.Stack
)

var (
	newStack, at = walktest.NewStack, walktest.At
	stateOf      = walktest.StateOf[Registers]
	stepOf       = walktest.Step[Registers]
	walkOf       = walktest.Walk[Registers]
)

// makeTable loads functions into a module at textBias, one after another from
// textLo, and code without unwind data at codeLo, with a managed range beside.
func makeTable(tb testing.TB, code []uint32, fns ...fn) *module.Table {
	tb.Helper()
	m := module.Module{Start: textBias, End: textBias + 0x10000, Bias: textBias, ELF: image(tb, code),
		CFI: walktest.CFI(tb, context.ArchARM64, fns...)}
	return module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}})
}

// image is an ELF file whose code at codeLo is code, with a call in front of
// codeCall.
func image(tb testing.TB, code []uint32) *elf.File {
	tb.Helper()
	text := make([]byte, 0x1000)
	for i, w := range code {
		binary.LittleEndian.PutUint32(text[4*i:], w)
	}
	binary.LittleEndian.PutUint32(text[codeCall-4-codeLo:], 0x94000000)
	return must.Get(elf.New(elfasm.Code(elfasm.ARM64, codeLo-textBias, text), "code"))(tb)
}

// unwinder returns an unwinder that has used all its storage in an earlier step, so that tests notice code
// that reads what it has not written.
func unwinder(t *module.Table) *Unwinder {
	u := New()
	u.follower = follower{goal: 1, uncalled: true, sp: 1, ok: true, returns: 1, torn: true}
	u.SetTable(t)
	return u
}

// start returns registers with a value of its own in each.
func start(pc, sp uint64) Registers {
	r := Registers{PC: pc, Sp: sp, Known: 1<<31 - 1 | 0xff<<32}
	for i := range r.X {
		r.X[i] = 0x2222_0000 + uint64(i)
	}
	for i := range r.D {
		r.D[i] = 0x3333_0000 + uint64(i)
	}
	r.X[regLR] = codeCall
	return r
}

// begin makes s an interrupted frame in registers r, for benchmarks: it copies
// no more than they must.
func begin(s *unwind.State, r *Registers, exact bool) {
	s.Regs.ARM64 = *r // apart from the others: together they would be copied twice
	s.Regs.Arch, s.Exact, s.Trust = context.ArchARM64, exact, unwind.TrustContext
}

// leaveOf runs one way of leaving a frame on r.
func leaveOf(r *Registers, exact bool, leave func(s *unwind.State) (bool, unwind.Stop)) (bool, unwind.Stop) {
	regs := context.FromARM64(*r) // not stateOf, which allocates
	exact, stop := leave(&unwind.State{Regs: &regs, Exact: exact, Trust: unwind.TrustContext})
	*r = regs.ARM64
	return exact, stop
}

func newCached() walktest.Walker { return New() }

// BenchmarkStep is one warm step per kind of rule.
func BenchmarkStep(b *testing.B) {
	for _, e := range cfiEffects {
		if e.stop != unwind.StopNone {
			continue
		}
		b.Run(e.kind.String()+"/"+e.name, func(b *testing.B) {
			u, s, r := unwinder(makeTable(b, nil, fn{Program: e.program, Signal: e.signal}, fn{})),
				newStack(), start(at(0), sp0)
			if e.prepare != nil {
				e.prepare(s, &r)
			}
			mem := s.Window()
			var f unwind.Frame
			from := unwind.State{Regs: new(context.Registers)}
			for b.Loop() {
				begin(&from, &r, !e.ret)
				if stop := u.Step(&from, mem, nil, &f); stop != unwind.StopNone {
					b.Fatal(stop)
				}
			}
		})
	}
}

// BenchmarkUndo is one run of unwind codes, and the rule made from them.
func BenchmarkUndo(b *testing.B) {
	codes := []byte{0xe1, 0xe6, 0xd8, 0x0a, 0xe6, 0xe6, 0xe6, 0xc8, 0x02, 0x8b, 0xfc, 0xe4}
	u, mem := New(), testStack()
	f, from := unwind.Frame{}, unwind.State{Regs: new(context.Registers)}
	b.Run("codes", func(b *testing.B) {
		for b.Loop() {
			regs := testRegs()
			begin(&from, &regs, true)
			if _, stop := u.runCodes(codes, &from, mem, &unbounded, &f); stop != unwind.StopNone {
				b.Fatal(stop)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			u.undo.compile()
			must.True(b, u.undo.codes(codes) == undone, "refused")
			if _, ok := u.undo.pack(0); !ok {
				b.Fatal("does not fit")
			}
		}
	})
	b.Run("rule", func(b *testing.B) {
		u.undo.compile()
		u.undo.codes(codes)
		r, _ := u.undo.pack(0)
		for b.Loop() {
			regs := testRegs()
			begin(&from, &regs, true)
			if stop := u.stepSlots(&r, &from, mem, &unbounded, &f); stop != unwind.StopNone {
				b.Fatal(stop)
			}
		}
	})
}
