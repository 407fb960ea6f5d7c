package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestCatchUp: a row that has not seen the stack pointer move is told by its own
// instructions; what they do not show is left as it is.
func TestCatchUp(t *testing.T) {
	sub := []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x0f, 0x29, 0x34, 0x24, 0xc3} // sub rsp, 168; movaps [rsp], xmm6
	for _, c := range []struct {
		name string
		code []byte
		into uint64
		cfa  cfi.Rule
		far  uint64 // from the function's begin to the row's
		want int64
	}{
		{"before the sub", sub, 0, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 32}, 0, 32},
		{"behind it", sub, 7, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 32}, 0, 200},
		{"later", sub, 11, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 32}, 0, 200},
		{"relative to rbp", sub, 7, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRBP, Off: 32}, 0, 32},
		{"far from the prolog", sub, 7, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 32}, maxProlog, 32},
		{"over a return", append([]byte{0xc3}, sub...), 8, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 32}, 0, 32},
		{"sub of 8 bits and a pop", []byte{0x48, 0x83, 0xec, 0x20, 0x58, 0xc3}, 5, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 16}, 0, 40},
		{"by a register's value", []byte{0x48, 0x83, 0xec, 0x20, 0x48, 0x29, 0xc4, 0xc3}, 7, cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 16}, 0, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := codeTable(t, c.code).At(0)
			lo := uint64(codeLo) - m.Bias
			row := cfi.Row{Lo: lo, Hi: lo + 64, CFA: c.cfa}
			row.FDE.Lo = lo - c.far
			if catchUp(&row, m, lo+c.into); row.CFA.Off != c.want {
				t.Errorf("CFA at %d, want %d", row.CFA.Off, c.want)
			}
		})
	}
}

// TestPEChainLimit: as many parents as Windows follows, and no more.
func TestPEChainLimit(t *testing.T) {
	for parents, want := range map[int]unwind.Stop{31: unwind.StopNone, 32: unwind.StopNone, 33: unwind.BadInfo} {
		const step = 0x20
		at := func(i int) uint32 { return peInfo + uint32(i)*step }
		chained := func(i int) []byte {
			if i == parents {
				return info(1, 0, 0, 0)
			}
			return append(info(1, 4, 0, 0), entries(peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: at(i + 1)})...)
		}
		var more []pe.Block
		for i := 1; i <= parents; i++ {
			more = append(more, pe.Block{RVA: at(i), Data: chained(i)})
		}
		u := peUnwinder(peImage(chained(0), nil, more...))
		regs, f := peRegs(peFn+8), unwind.Frame{}
		if _, stop := stepOf(u, &regs, true, peMemory(), nil, &f); stop != want {
			t.Errorf("%d parents: %v, want %v", parents, stop, want)
		}
	}
}
