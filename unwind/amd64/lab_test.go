package amd64

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

var lab = walktest.Lab{
	Arch: context.ArchAMD64,
	New: func(tb testing.TB, fns ...fn) walktest.Walker {
		return unwinder(makeTable(tb, 1, fns...))
	},
	Start: func(ip, sp uint64) context.Registers { return context.FromAMD64(start(ip, sp)) },
	Plain: fn{Program: []byte{0x0e, 16, 0x80 | 3, 2}},
	Last:  fn{Program: []byte{0x07, 16}},
	ByFP:  fn{Program: []byte{0x0c, 6, 16, 0x80 | 6, 2}},
	Side:  fn{Program: []byte{0x0c, 10, 0}},
	Big: fn{Program: []byte{0x0e, 64, 0x80 | 3, 7, 0x80 | 6, 6, 0x80 | 12, 5, 0x80 | 13,
		4, 0x80 | 14, 3, 0x80 | 15, 2}},
	BigReturn: 56,
	FP:        1 << context.RBP,
	Guessed:   1<<context.RSP | 1<<context.RBP,
	Hostile: []walktest.Hostile{
		{Name: "frame pointers in a ring, guessed", IP: 0x4242, FP: sp0, Guess: true,
			Fill: walktest.Ring(jitIP), Stop: unwind.Managed},
		{Name: "CFA that is the stack pointer", Fns: []fn{{Program: []byte{0x0e, 0}}}, IP: at(0),
			N: 1, Stop: unwind.NoProgress},
		{Name: "a signal frame above itself", Fns: []fn{{Program: []byte{0x14, 7, 1, 0x09, 16, 0, 0x08, 0},
			Signal: true}}, IP: at(0), Stop: unwind.NoProgress},
	},
	Word: func(rnd *rand.Rand) uint64 {
		switch rnd.IntN(4) {
		case 0:
			return rnd.Uint64()
		case 1:
			return stackLow + rnd.Uint64N(stackSize)&^7
		case 2:
			return jitLo + rnd.Uint64N(jitHi-jitLo)
		}
		return textBias + textLo + rnd.Uint64N(uint64(len(effects))*fnSize)
	},
	Cache: walktest.Cache{Ways: ways, Apart: 1 << 24,
		Look: func(w walktest.Walker, ip uint64) bool {
			return w.(*Unwinder).lookup(unwind.Instruction(ip)).Managed()
		},
		Kept: func(w walktest.Walker) (at []uint64) {
			for _, e := range w.(*Unwinder).cache[:] {
				if e.rule.bits != 0 {
					at = append(at, e.addr)
				}
			}
			return at
		}},
}

// TestWalks runs the tests that both architectures share.
func TestWalks(t *testing.T) {
	for _, e := range effects {
		lab.Real = append(lab.Real, fn{Program: e.program})
	}
	lab.Run(t)
}

func BenchmarkWalk(b *testing.B)     { lab.BenchmarkWalk(b, 128) }
func BenchmarkRecorded(b *testing.B) { lab.BenchmarkRecorded(b) }
func BenchmarkGuess(b *testing.B)    { lab.BenchmarkGuess(b) }

const (
	textBias  = walktest.TextBias
	textLo    = walktest.TextLo
	fnSize    = walktest.FnSize
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
// textLo, with a managed range beside it.
func makeTable(tb testing.TB, gen uint32, fns ...fn) *module.Table {
	tb.Helper()
	// The module is a function longer than its unwind data.
	end := uint64(textBias + textLo + (len(fns)+1)*fnSize)
	m := module.Module{Start: textBias, End: end, Bias: textBias,
		CFI: walktest.CFI(tb, context.ArchAMD64, fns...)}
	return module.NewTable(gen, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}})
}

// from returns a window on the stack from addr upwards.
func from(s *stack, addr uint64) *memory.Window {
	return memory.New(memory.Run{Addr: addr, Data: s.Data[addr-stackLow:]})
}

// beside returns a window in which the stack is not the hot run.
func beside(s *stack) *memory.Window {
	return memory.New(memory.Run{Addr: stackLow, Data: s.Data},
		memory.Run{Addr: 2 * stackLow, Data: make([]byte, 2*stackSize)})
}

// start returns registers with a value of its own in each.
func start(ip, sp uint64) Registers {
	r := Registers{RIP: ip, Known: context.AMD64All}
	for i := range r.GPR {
		r.GPR[i] = 0x2222_0000 + uint64(i)
	}
	r.GPR[context.RSP] = sp
	return r
}

// unwinder returns an unwinder that has used all its storage in an earlier step, so that tests notice code
// that reads what it has not written.
func unwinder(t *module.Table) *Unwinder {
	u := New()
	u.follower = follower{goal: 1, sp: 1, fp: 1, fpOK: true, measure: true, ok: true, returns: 1, torn: true,
		calls: true, prove: true, called: true}
	u.SetTable(t)
	return u
}

// begin makes s an interrupted frame in registers r, for benchmarks: it copies
// no more than they must.
func begin(s *unwind.State, r *Registers, exact bool) {
	s.Regs.AMD64 = *r // apart from the others: together they would be copied twice
	s.Regs.Arch, s.Exact, s.Trust = context.ArchAMD64, exact, unwind.TrustContext
}

func newCached() walktest.Walker { return New() }

// BenchmarkStep is one warm step per kind of rule.
func BenchmarkStep(b *testing.B) {
	for _, e := range effects {
		if e.stop != unwind.StopNone {
			continue
		}
		b.Run(fmt.Sprintf("%d/%s", e.kind, e.name), func(b *testing.B) {
			u, s, r := unwinder(makeTable(b, 1, fn{Program: e.program, Signal: e.signal}, fn{})), newStack(),
				start(at(0), sp0)
			e.prepare(s, &r)
			mem := s.Window()
			var f unwind.Frame
			from := unwind.State{Regs: new(context.Registers)}
			for b.Loop() {
				begin(&from, &r, true)
				if stop := u.Step(&from, mem, nil, &f); stop != unwind.StopNone {
					b.Fatal(stop)
				}
			}
		})
	}
}
