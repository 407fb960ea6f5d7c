package managed

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/testkit/elfasm"
	"github.com/seedwalk/seedwalk/module"
)

// A hijack stub is a function that begins as one of HijackStubs does; the same
// bytes elsewhere are not.
func TestFindHijackStub(t *testing.T) {
	const start, lo, size = 0x7f0000000000, 0x40, 0x40
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	for i := range uint64(3) {
		frames.FDE(&cie, lo+i*size, size)
	}
	table, err := cfi.Load(cfi.Sections{Arch: context.ArchAMD64, EHFrame: frames.Bytes(), EHFrameAddr: 0x100000})
	if err != nil {
		t.Fatal(err)
	}
	m := &module.Module{Start: start, End: start + 5*size, Bias: start, CFI: table}
	linux, windows := HijackStubs[0].Code, HijackStubs[2].Code
	if got := FindHijackStub(&module.Module{Start: start}, linux); got != 0 {
		t.Errorf("of a module without unwind data: %#x", got)
	}
	for _, c := range []struct {
		name string
		code []byte
		at   int
		want uint64
	}{
		{"a function", linux, lo + size, start + lo + size},
		{"the last function, cut behind the bytes", linux, lo + 2*size, start + lo + 2*size},
		{"inside of a function", linux, lo + size + 1, 0},
		{"before all functions", linux, 0, 0},
		{"behind all functions", linux, lo + 3*size, 0},
		{"not all of it", linux[:len(linux)-1], lo, 0},
		{"that of Windows", windows, lo, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := append(make([]byte, c.at), c.code...)
			if got := FindHijackStub(m, code); got != c.want {
				t.Errorf("%#x, want %#x", got, c.want)
			}
			twice := append(append(make([]byte, lo+4), linux...), make([]byte, 5*size)...)
			copy(twice[lo+size:], c.code)
			if got := FindHijackStub(m, twice); c.at == lo+size && got != c.want {
				t.Errorf("behind one that begins no function: %#x, want %#x", got, c.want)
			}
		})
	}
}
