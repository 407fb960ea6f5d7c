package amd64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A thunk of gcc's -mfunction-return and -mindirect-branch is call 1f; 0: pause; lfence;
// jmp 0b; 1: BODY; ret. The body drops the return address (lea rsp, [rsp+8]) or overwrites
// it with the target (mov [rsp], reg). gcc writes a CFA of RSP+16 at 1 and nothing later:
// at the return of the first kind the CFA is RSP+8, and behind a thunk that is inlined the
// function's old row holds again (seen in 12.2).
const (
	thunkCFA = 16
	trapSize = 12 // from the call to the body
)

// thunkReturn returns the offset of the return in a thunk's body, 0 if code is none.
// drops reports whether the body drops the return address.
func thunkReturn(code []byte) (at uint64, drops bool) {
	if len(code) < 6 {
		return 0, false
	}
	switch b := [6]byte(code); {
	case b == [6]byte{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}:
		return 5, true
	case b[0]&0xfb == 0x48 && b[1] == 0x89 && b[2]&0xc7 == 4 && b[3] == 0x24 && b[4] == 0xc3:
		return 4, false
	}
	return 0, false
}

// mendThunk corrects u.row in a thunk and behind one. In a thunk, every register that a
// function preserves has the caller's value. It reads code for few rows only.
func (u *Unwinder) mendThunk(m *module.Module, a unwind.Address) cfi.Reason {
	row, addr := &u.row, a.Lookup()-m.Bias
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || !m.SystemV() {
		return cfi.None
	}
	if a.Exact && addr == row.Hi-trapSize { // the call of an inlined indirect branch
		if n, drops := thunkReturn(codeAt(m, row.Hi+m.Bias, 6)); n != 0 && !drops {
			thunkRow(row, 8)
		}
		return cfi.None
	}
	if row.CFA.Off != thunkCFA || row.Lo == row.FDE.Lo {
		return cfi.None
	}
	n, drops := thunkReturn(codeAt(m, row.Lo+m.Bias, 6))
	switch into := addr - row.Lo; {
	case n == 0:
	case into > n:
		return u.machine.Row(m.CFI, row.Lo-1, row)
	case drops && into == n:
		thunkRow(row, 8)
	default:
		thunkRow(row, thunkCFA)
	}
	return cfi.None
}

// thunkRow makes a row that of a leaf that has pushed words only.
func thunkRow(row *cfi.Row, off int64) {
	row.CFA.Off = off
	for c := range row.Regs[:dwarfRA] {
		if cfi.CalleeSaved(context.ArchAMD64, uint16(c)) && c != dwarfRSP {
			row.Set(c, cfi.Rule{Kind: cfi.SameValue})
		}
	}
}

// belowRSP reports whether a common row behind a thunk claims that a register is saved
// below the stack pointer, where nothing is kept across a call.
func belowRSP(row *cfi.CommonRow) bool {
	if row.Off != thunkCFA || row.Reg != dwarfRSP {
		return false
	}
	for w := row.Words; w != 0; w >>= 4 {
		if w&15 > thunkCFA/8 {
			return true
		}
	}
	return false
}
