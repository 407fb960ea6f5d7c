package amd64

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

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
