package amd64

import (
	"bytes"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestCatchUp: the CFA of a long row that misses a sub from the stack pointer is corrected.
func TestCatchUp(t *testing.T) {
	// sub rsp, 168; movaps [rsp], xmm6
	long := []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x0f, 0x29, 0x34, 0x24, 0xc3}
	short := []byte{0x48, 0x83, 0xec, 0x20, 0x58, 0x90, 0x90, 0x90, 0xc3}
	plain := append(long[:7:7], bytes.Repeat([]byte{0x90}, maxLate)...)
	for _, c := range []struct {
		name  string
		code  []byte
		into  uint64
		base  uint16
		off   int64
		size  uint64
		saved bool // the row names a saved register
		want  int64
	}{
		{"before the sub", long, 0, dwarfRSP, 32, 64, false, 32},
		{"behind it", long, 7, dwarfRSP, 32, 64, false, 200},
		{"later", long, 11, dwarfRSP, 32, 64, false, 200},
		{"relative to rbp", long, 7, dwarfRBP, 32, 64, false, 32},
		{"without two pushes", long, 7, dwarfRSP, 16, 64, false, 16},
		{"of a short row", long, 7, dwarfRSP, 32, 39, false, 32},
		{"of a row that has seen it", long, 7, dwarfRSP, 32, 64, true, 32},
		{"behind other code", append([]byte{0x90}, long...), 8, dwarfRSP, 32, 64, false, 200},
		{"behind a branch", append([]byte{0x75, 0}, long...), 9, dwarfRSP, 32, 64, false, 32},
		{"before a sub of 8 bits", short, 0, dwarfRSP, 24, 64, false, 24},
		{"behind it", short, 4, dwarfRSP, 24, 64, false, 56},
		{"as far as code is executed", plain, maxLate, dwarfRSP, 32, 512, false, 200},
		{"farther", plain, maxLate + 1, dwarfRSP, 32, 512, false, 32},
		{"behind an add", []byte{0x48, 0x83, 0xc4, 0x20, 0x58, 0x90, 0x90, 0xc3},
			4, dwarfRSP, 24, 64, false, 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := codeTable(t, c.code).At(0)
			lo := uint64(codeLo) - m.Bias
			row := cfi.Row{Lo: lo, Hi: lo + c.size,
				CFA: cfi.Rule{Kind: cfi.RegisterOffset, Reg: c.base, Off: c.off}}
			row.Set(dwarfRA, cfi.Rule{Kind: cfi.Offset, Off: -8})
			if c.saved {
				row.Set(dwarfRBX, cfi.Rule{Kind: cfi.Offset, Off: -16})
			}
			New().catchUp(&row, m, lo+c.into)
			expect.Equal(t, row.CFA.Off, c.want, "CFA at")
		})
	}
}

// TestUnlistedPush: between a push and a pop inside a row, the CFA is a word further away.
func TestUnlistedPush(t *testing.T) {
	// push 12; mov eax, ebp; pop rcx; rep stosd
	code := []byte{0x6a, 0x0c, 0x89, 0xe8, 0x59, 0xf3, 0xab}
	// push 12; call; pop rcx
	call := []byte{0x6a, 0x0c, 0xe8, 0, 0, 0, 0, 0x59, 0x90}
	// mov edx, [rip+6a80h]; mov eax, ebp; pop rbx
	zero := []byte{0x8b, 0x15, 0x80, 0x6a, 0, 0, 0, 0x89, 0xe8, 0x5b, 0x90}
	// push 12, and no pop
	other := []byte{0x6a, 0x0c, 0x89, 0xe8, 0x89, 0xe9, 0x89, 0xe8, 0xc3, 0x90}
	for _, c := range []struct {
		name     string
		code     []byte
		into, lo uint64
		hi       uint64
		base     uint16
		want     int64
	}{
		{"at the push", code, 0, 0, 7, dwarfRSP, 32},
		{"behind it", code, 2, 0, 7, dwarfRSP, 40},
		{"at the pop", code, 4, 0, 7, dwarfRSP, 40},
		{"behind the pop", code, 5, 0, 7, dwarfRSP, 32},
		{"the row ends at the pop's end", code, 4, 0, 5, dwarfRSP, 32},
		{"the row begins behind the push", code, 4, 2, 7, dwarfRSP, 32},
		{"relative to rbp", code, 4, 0, 7, dwarfRBP, 32},
		{"behind a call", call, 7, 0, 9, dwarfRSP, 32},
		{"a number in another instruction", zero, 7, 0, 11, dwarfRSP, 32},
		{"no pop", other, 4, 0, 10, dwarfRSP, 32},
	} {
		m := codeTable(t, c.code).At(0)
		lo := uint64(codeLo) - m.Bias
		row := cfi.Row{Lo: lo + c.lo, Hi: lo + c.hi,
			CFA: cfi.Rule{Kind: cfi.RegisterOffset, Reg: c.base, Off: 32}}
		row.FDE.Lo = lo
		unlistedPush(&row, m, lo+c.into)
		expect.Equal(t, row.CFA.Off, c.want, "%s: CFA at", c.name)
	}
}

// TestUnpush: registers that a row lists as saved before they are pushed are taken as unchanged.
func TestUnpush(t *testing.T) {
	pushes := []byte{0x55, 0x48, 0x89, 0xe5, 0x53, 0x50}    // push rbp; mov rbp, rsp; push rbx; push rax
	redZone := []byte{0x48, 0x89, 0x5c, 0x24, 0xf0, 0x90}   // mov [rsp-16], rbx: below RSP too
	branch := []byte{0x75, 0, 0x55, 0x48, 0x89, 0xe5, 0x53} // jne, and the same
	for _, c := range []struct {
		name     string
		code     []byte
		at       uint64
		base     uint16
		off      int64
		rbp, rbx cfi.Kind
	}{
		{"at the start", pushes, 0, dwarfRSP, 8, cfi.SameValue, cfi.SameValue},
		{"one pushed", pushes, 1, dwarfRSP, 16, cfi.Offset, cfi.SameValue},
		{"relative to rbp", pushes, 4, dwarfRBP, 16, cfi.Offset, cfi.SameValue},
		{"all pushed", pushes, 5, dwarfRBP, 16, cfi.Offset, cfi.Offset},
		{"in the red zone", redZone, 5, dwarfRSP, 8, cfi.SameValue, cfi.Offset},
		{"behind a branch", branch, 3, dwarfRSP, 16, cfi.Offset, cfi.Offset},
	} {
		m := codeTable(t, c.code).At(0)
		lo := uint64(codeLo) - m.Bias
		row := cfi.Row{FDE: cfi.FDE{Lo: lo, Hi: lo + 64}, Lo: lo + c.at, Hi: lo + 64,
			CFA: cfi.Rule{Kind: cfi.RegisterOffset, Reg: c.base, Off: c.off}}
		row.Set(dwarfRBP, cfi.Rule{Kind: cfi.Offset, Off: -16})
		row.Set(dwarfRBX, cfi.Rule{Kind: cfi.Offset, Off: -24})
		New().unpush(&row, m, lo+c.at)
		expect.True(t, row.Regs[dwarfRBP].Kind == c.rbp && row.Regs[dwarfRBX].Kind == c.rbx,
			"%s: rbp %v, rbx %v", c.name, row.Regs[dwarfRBP].Kind, row.Regs[dwarfRBX].Kind)
	}
}

// TestReturnByJump: after the pop of a return address, the row still has that address on the stack, and is
// corrected.
func TestReturnByJump(t *testing.T) {
	low := []byte{0x90, 0x90, 0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1}        // pop rcx; lfence; jmp rcx
	high := []byte{0x90, 0x41, 0x58, 0x0f, 0xae, 0xe8, 0x41, 0xff, 0xe0} // r8
	other := []byte{0x90, 0x90, 0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe2}      // pop rcx; ...; jmp rdx
	unfenced := []byte{0x90, 0x59, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe1}   // a tail call
	for _, c := range []struct {
		name string
		code []byte
		at   uint64
		off  int64 // of the CFA from RSP
		base uint16
		want int64
		reg  uint16 // that holds the return address; 0: none
	}{
		{"at the pop", low, 2, 8, dwarfRSP, 8, 0},
		{"at the fence", low, 3, 8, dwarfRSP, 0, 2},
		{"at the jump", low, 6, 8, dwarfRSP, 0, 2},
		{"at the pop of a high register", high, 1, 8, dwarfRSP, 8, 0},
		{"at the fence behind it", high, 3, 8, dwarfRSP, 0, 8},
		{"at the jump to a high register", high, 6, 8, dwarfRSP, 0, 8},
		{"to another register", other, 6, 8, dwarfRSP, 8, 0},
		{"without a fence", unfenced, 6, 8, dwarfRSP, 8, 0},
		{"of a larger frame", low, 6, 16, dwarfRSP, 16, 0},
		{"relative to rbp", low, 6, 8, dwarfRBP, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := codeTable(t, c.code).At(0)
			lo := uint64(codeLo) - m.Bias
			row := cfi.Row{Lo: lo, Hi: lo + uint64(len(c.code)),
				CFA: cfi.Rule{Kind: cfi.RegisterOffset, Reg: c.base, Off: c.off}}
			row.Set(dwarfRA, cfi.Rule{Kind: cfi.Offset, Off: -8})
			returnByJump(&row, m, lo+c.at)
			ra := row.Regs[dwarfRA]
			expect.True(t, row.CFA.Off == c.want && (ra.Kind == cfi.Register) == (c.reg != 0) &&
				ra.Reg == c.reg, "CFA %d, return address %+v", row.CFA.Off, ra)
		})
	}
}

// TestRowOfReturn: at a return, what was saved has been restored. Registers that the language
// does not preserve stay unknown.
func TestRowOfReturn(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  byte
		saved cfi.Rule // of RBX
		want  cfi.Kind
	}{
		{"saved", 0xc3, cfi.Rule{Kind: cfi.Offset, Off: -48}, cfi.SameValue},
		{"not yet restored", 0x5b, cfi.Rule{Kind: cfi.Offset, Off: -48}, cfi.Offset},
		{"not preserved", 0xc3, cfi.Rule{Kind: cfi.Undefined}, cfi.Undefined},
	} {
		m := codeTable(t, []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, c.code}).At(0)
		lo := uint64(codeLo) - m.Bias
		row := cfi.Row{Lo: lo, Hi: lo + 8, CFA: cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: 8}}
		row.Set(dwarfRBX, c.saved)
		if returnByJump(&row, m, lo+7); row.Regs[dwarfRBX].Kind != c.want || row.CFA.Off != 8 {
			t.Errorf("%s: %+v, CFA %d", c.name, row.Regs[dwarfRBX], row.CFA.Off)
		}
	}
}

// TestPEChainLimit: as many parents as Windows follows, and no more.
func TestPEChainLimit(t *testing.T) {
	for parents, want := range map[int]unwind.Stop{31: unwind.StopNone,
		32: unwind.StopNone, 33: unwind.BadInfo} {
		const step = 0x20
		at := func(i int) uint32 { return peInfo + uint32(i)*step }
		chained := func(i int) []byte {
			if i == parents {
				return info(1, 0, 0, 0)
			}
			return append(info(1, 4, 0, 0),
				entries(peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: at(i + 1)})...)
		}
		var more []pe.Block
		for i := 1; i <= parents; i++ {
			more = append(more, pe.Block{RVA: at(i), Data: chained(i)})
		}
		u := peUnwinder(peImage(chained(0), nil, more...))
		regs, f := peRegs(peFn+8), unwind.Frame{}
		_, stop := stepOf(u, &regs, true, peMemory(), nil, &f)
		expect.True(t, stop == want, "%d parents: %v, want %v", parents, stop, want)
	}
}
