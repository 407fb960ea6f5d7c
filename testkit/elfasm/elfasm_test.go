package elfasm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The standard library and Delve read what is written: they are independent readers
// here.
func TestImageIsRead(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(Image()))
	must.Do(t, err)
	symbols, err := f.Symbols()
	expect.True(t, err == nil && len(symbols) == 1 && symbols[0].Name == "outer" &&
		symbols[0].Value == Func && symbols[0].Size == Size, "%v, %+v", err, symbols)
	s := f.Section(".eh_frame")
	data, err := s.Data()
	must.Do(t, err)
	got, err := frame.Parse(data, binary.LittleEndian, 0, 8, s.Addr)
	must.True(t, err == nil && len(got) == 1 && got[0].Begin() == Func && got[0].End() == Func+Size,
		"%v, %+v", err, got)
	for at, want := range map[uint64]int64{0: 8, 1: 16, 5: 8} {
		row, err := got[0].EstablishFrame(Func + at)
		expect.True(t, err == nil && row.CFA.Offset == want, "at %d: %v, %+v", at, err, row)
	}
}

func TestCodeIsRead(t *testing.T) {
	for _, machine := range []uint16{AMD64, ARM64} {
		f := must.Get(elf.NewFile(bytes.NewReader(Code(machine, 0x2000, []byte("code")))))(t)
		got := make([]byte, 4)
		_, err := f.Progs[0].ReadAt(got, 0)
		expect.True(t, err == nil && len(f.Progs) == 1 && f.Progs[0].Vaddr == 0x2000 &&
			uint16(f.Machine) == machine, "%v, %+v", err, f.Progs)
		expect.Equal(t, cmp.Diff("code", string(got)), "")
	}
}

// Absolute addresses, signal frames, two CIEs.
func TestFramesAreRead(t *testing.T) {
	a, b, f := ARM64CIE(), AMD64CIE(), Frames{}
	b.Signal = true
	f.CIE(&a)
	f.FDE(&a, 0x1000, 0x10)
	f.CIE(&b)
	f.FDE(&b, 0x2000, 0x20)
	f.FDE(&a, 0x3000, 0x30)
	got, err := frame.Parse(f.Bytes(), binary.LittleEndian, 0, 8, 0x8000)
	must.True(t, err == nil && len(got) == 3, "%v %v", err, got)
	for i, want := range []struct{ lo, ra uint64 }{{0x1000, 30}, {0x2000, 16}, {0x3000, 30}} {
		expect.True(t, got[i].Begin() == want.lo && got[i].CIE.ReturnAddressRegister == want.ra,
			"%d: %#x, return address in %d", i, got[i].Begin(), got[i].CIE.ReturnAddressRegister)
	}
}
