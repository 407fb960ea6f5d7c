package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

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
