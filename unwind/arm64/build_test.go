package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
)

// A labelled builder of call frame information, code and stacks, independent
// of the readers it tests.

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

func ehRecord(body []byte) []byte {
	for len(body)%8 != 4 {
		body = append(body, 0) // DW_CFA_nop
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// cie is version 1, code alignment 1, data alignment -8, return address x30,
// absolute pointers; CFA = SP.
func cie(augmentation string) []byte {
	b := append([]byte{0, 0, 0, 0, 1}, augmentation...)
	return ehRecord(append(b, 0, 1, 0x78, 30, 1, 0, 0x0c, 31, 0))
}

func fde(sec []byte, cieAt int, lo uint64, program []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(sec)+4-cieAt))
	b = binary.LittleEndian.AppendUint64(b, lo)
	b = binary.LittleEndian.AppendUint64(b, fnSize)
	b = append(b, 0)
	return append(sec, ehRecord(append(b, program...))...)
}

// makeTable loads functions into a module at textBias, one after another from
// textLo, and code without unwind data at codeLo, with a managed range beside.
func makeTable(tb testing.TB, code []uint32, fns ...fn) *module.Table {
	tb.Helper()
	sec := cie("zR")
	signalAt := len(sec)
	sec = append(sec, cie("zRS")...)
	for i, f := range fns {
		at := 0
		if f.signal {
			at = signalAt
		}
		sec = fde(sec, at, textLo+uint64(i)*fnSize, f.program)
	}
	sec = append(sec, 0, 0, 0, 0)
	t, err := cfi.Load(cfi.Sections{Arch: context.ArchARM64, EHFrame: sec, EHFrameAddr: 0x100000})
	if err != nil {
		tb.Fatal(err)
	}
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
	le := binary.LittleEndian
	h := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	h = le.AppendUint16(h, 3)   // ET_DYN
	h = le.AppendUint16(h, 183) // EM_AARCH64
	h = le.AppendUint32(h, 1)
	h = le.AppendUint64(h, 0)
	h = le.AppendUint64(h, 64) // program headers
	h = le.AppendUint64(h, 0)
	h = le.AppendUint32(h, 0)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		h = le.AppendUint16(h, v)
	}
	h = le.AppendUint32(h, 1) // PT_LOAD
	h = le.AppendUint32(h, 5) // r-x
	for _, v := range []uint64{0x1000, codeLo - textBias, codeLo - textBias, 0x1000, 0x1000, 0x1000} {
		h = le.AppendUint64(h, v)
	}
	f, err := elf.New(append(append(h, make([]byte, 0x1000-len(h))...), text...), "code")
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// at is an address in function i.
func at(i int) uint64 { return textBias + textLo + uint64(i)*fnSize + 0x10 }

// stack is a hand-made stack; every word not set holds a value that is no
// address of code.
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
func unwinder(t *module.Table) *Unwinder { u := New(); u.SetTable(t); return u }

// start gives registers with a value of its own in each.
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
