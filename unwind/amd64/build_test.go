package amd64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A labeled builder of call frame information and stacks, independent of the readers that it tests.

const (
	textBias  = 0x5000_0000 // the module's bias
	textLo    = 0x1000      // image addresses of its functions, fnSize each
	fnSize    = 0x100
	stackLow  = 0x7000_0000
	stackSize = 0x4000
	jitLo     = 0x9000_0000 // a managed range
	jitHi     = 0x9001_0000
)

// fn is one function: its call frame program and whether it is a signal frame.
type fn struct {
	program []byte
	signal  bool
}

func uleb(v uint64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// makeTable loads functions into a module at textBias, one after another from
// textLo, with a managed range beside it.
func makeTable(tb testing.TB, gen uint32, fns ...fn) *module.Table {
	tb.Helper()
	plain, signal, frames := elfasm.AMD64CIE(), elfasm.AMD64CIE(), elfasm.Frames{}
	signal.Signal = true
	frames.CIE(&plain)
	frames.CIE(&signal)
	for i, f := range fns {
		c := &plain
		if f.signal {
			c = &signal
		}
		frames.FDE(c, textLo+uint64(i)*fnSize, fnSize, f.program...)
	}
	t := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(tb)
	// The module is a function longer than its unwind data.
	end := uint64(textBias + textLo + (len(fns)+1)*fnSize)
	return module.NewTable(gen, []module.Module{{Start: textBias, End: end, Bias: textBias, CFI: t}},
		[]memory.Range{{Start: jitLo, End: jitHi}})
}

// at is an address in function i.
func at(i int) uint64 { return textBias + textLo + uint64(i)*fnSize + 0x10 }

// stack is a stack whose words a test sets. Every other word has a value that is not an address of code.
type stack struct{ data []byte }

func newStack() *stack {
	s := &stack{make([]byte, stackSize)}
	for i := uint64(0); i < stackSize; i += 8 {
		s.set(stackLow+i, 0x1111_0000_0000+i)
	}
	return s
}

func (s *stack) set(addr, v uint64) { binary.LittleEndian.PutUint64(s.data[addr-stackLow:], v) }

func (s *stack) word(addr uint64) uint64 {
	return binary.LittleEndian.Uint64(s.data[addr-stackLow:])
}

func (s *stack) window() *memory.Window {
	return memory.New(memory.Run{Addr: stackLow, Data: s.data})
}

// from returns a window on the stack from addr upwards.
func (s *stack) from(addr uint64) *memory.Window {
	return memory.New(memory.Run{Addr: addr, Data: s.data[addr-stackLow:]})
}

// beside returns a window in which the stack is not the hot run.
func (s *stack) beside() *memory.Window {
	return memory.New(memory.Run{Addr: stackLow, Data: s.data},
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
