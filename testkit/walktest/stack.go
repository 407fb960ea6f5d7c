package walktest

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Where the module, the stack, and the managed code of a test are.
const (
	TextBias  = 0x5000_0000 // the module's bias
	TextLo    = 0x1000      // image addresses of its functions, FnSize each
	FnSize    = 0x100
	StackLow  = 0x7000_0000
	StackSize = 0x4000
	SP0       = StackLow + 0x1000 // the leaf's stack pointer
	JitLo     = 0x9000_0000       // managed code
	JitHi     = 0x9001_0000
	JitIP     = JitLo + 0x124
)

// Fn is one function: its call frame program and whether it is a signal frame.
type Fn struct {
	Program []byte
	Signal  bool
}

// At returns an address in function i.
func At(i int) uint64 { return TextBias + TextLo + uint64(i)*FnSize + 0x10 }

// CFI returns the call frame information of functions that lie one after another from TextLo.
func CFI(tb testing.TB, arch context.Arch, fns ...Fn) *cfi.Table {
	tb.Helper()
	plain, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	if arch == context.ArchARM64 {
		plain = elfasm.ARM64CIE()
	}
	signal := plain
	signal.Signal = true
	frames.CIE(&plain)
	frames.CIE(&signal)
	for i, f := range fns {
		c := &plain
		if f.Signal {
			c = &signal
		}
		frames.FDE(c, TextLo+uint64(i)*FnSize, FnSize, f.Program...)
	}
	return must.Get(cfi.Load(cfi.Sections{Arch: arch, EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(tb)
}

// Stack is a stack whose words a test sets. Every other word has a value that is not an address of code.
type Stack struct{ Data []byte }

// NewStack returns a stack at StackLow.
func NewStack() *Stack {
	s := &Stack{make([]byte, StackSize)}
	for i := uint64(0); i < StackSize; i += 8 {
		s.Set(StackLow+i, 0x1111_0000_0000+i)
	}
	return s
}

// Set sets the word at addr.
func (s *Stack) Set(addr, v uint64) { binary.LittleEndian.PutUint64(s.Data[addr-StackLow:], v) }

// Word returns the word at addr.
func (s *Stack) Word(addr uint64) uint64 { return binary.LittleEndian.Uint64(s.Data[addr-StackLow:]) }

// Window returns the stack's memory.
func (s *Stack) Window() *memory.Window { return memory.New(memory.Run{Addr: StackLow, Data: s.Data}) }
