package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A labeled builder of call frame information, code, and stacks, independent of the readers that it tests.

const (
	textBias  = 0x5000_0000 // the module's bias
	textLo    = 0x1000      // image addresses of its functions, fnSize each
	fnSize    = 0x100
	codeLo    = textBias + 0x8000 // code without unwind data
	codeCall  = codeLo + 0x804    // a believable return address
	stackLow  = 0x7000_0000
	stackSize = 0x4000
	sp0       = stackLow + 0x1000
	jitLo     = 0x9000_0000 // a managed range
	jitHi     = 0x9001_0000
	jitIP     = jitLo + 0x124
)

// fn is one function: its call frame program and whether it is a signal frame.
type fn struct {
	program []byte
	signal  bool
}

// makeTable loads functions into a module at textBias, one after another from
// textLo, and code without unwind data at codeLo, with a managed range beside.
func makeTable(tb testing.TB, code []uint32, fns ...fn) *module.Table {
	tb.Helper()
	plain, signal, frames := elfasm.ARM64CIE(), elfasm.ARM64CIE(), elfasm.Frames{}
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
	t := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(tb)
	m := module.Module{Start: textBias, End: textBias + 0x10000, Bias: textBias, CFI: t, ELF: image(tb, code)}
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

func (s *stack) set(addr, v uint64)      { binary.LittleEndian.PutUint64(s.data[addr-stackLow:], v) }
func (s *stack) word(addr uint64) uint64 { return binary.LittleEndian.Uint64(s.data[addr-stackLow:]) }
func (s *stack) window() *memory.Window  { return memory.New(memory.Run{Addr: stackLow, Data: s.data}) }

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
