package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind/module"
)

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

var newStack, at = walktest.NewStack, walktest.At

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
