package amd64

import (
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A thunk of gcc's -mfunction-return and -mindirect-branch is call 1f; 0: pause; lfence;
// jmp 0b; 1: BODY; ret. The body drops the return address (lea rsp, [rsp+8]) or overwrites
// it with the target of an indirect jump or call (mov [rsp], reg). gcc writes a CFA of RSP+16
// at 1 and nothing later. At the return of the first kind the CFA is RSP+8. Behind a thunk
// that is inlined, the function's old CFA holds again, and gcc's stays wrong to the function's
// end, also where it is remembered and restored (seen in 11.3 and 12.2).
const (
	thunkCFA = 16
	trapSize = 12 // from the call to the body
	maxBody  = 6  // bytes
)

// trap is pause; lfence: what lies behind the call in a thunk.
var trap = []byte{0xf3, 0x90, 0x0f, 0xae, 0xe8}

// thunk is a thunk's body.
type thunk struct {
	ret   uint64 // offset of the return
	drops bool   // the body drops the return address
	calls bool   // the thunk is called, and its return address is the frame's that it calls for
}

// thunkAt reads the body of a thunk at addr, an address in the image.
func thunkAt(m *module.Module, addr uint64) (t thunk, ok bool) {
	code := codeAt(m, addr+m.Bias, 12)
	t.ret, t.drops = thunkReturn(code)
	if t.ret == 0 {
		return t, false
	}
	// An indirect call jumps over its thunk to call it: jmp 2f; 3: call 1f; ...; ret; 2: call 3b.
	if back := code[t.ret+1:]; len(back) >= 5 && back[0] == 0xe8 {
		t.calls = t.ret+1+5+uint64(int64(int32(binary.LittleEndian.Uint32(back[1:])))) == ^uint64(trapSize)+1
	}
	return t, true
}

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

// mendThunk corrects u.row in a thunk and behind one. It reads code for few rows only.
func (u *Unwinder) mendThunk(m *module.Module, a unwind.Address) cfi.Reason {
	row, addr := &u.row, a.Lookup()-m.Bias
	if row.CFA.Kind != cfi.RegisterOffset || !m.SystemV() {
		return cfi.None
	}
	if a.Exact && addr == row.Hi-trapSize { // the call of an inlined indirect call
		if t, ok := thunkAt(m, row.Hi); ok && t.calls {
			thunkRow(row, 8)
			return cfi.None
		}
	}
	if row.CFA.Off != thunkCFA || row.Lo == row.FDE.Lo {
		return cfi.None
	}
	u.thunks.m = m
	if into := addr - row.Lo; a.Exact && into < maxBody {
		if t, ok := thunkAt(m, row.Lo); ok && into <= t.ret {
			return u.inThunk(t, into, addr)
		}
	}
	// The row of a push at a function's beginning, or before a pop, is right.
	if row.CFA.Reg != dwarfRSP || a.Exact && (row.Hi-row.Lo <= 2 || row.Lo-row.FDE.Lo < trapSize) {
		return cfi.None
	}
	why := u.machine.RowWithout(&u.thunks, m.CFI, addr, row)
	if why == cfi.None && !a.Exact && row.CFA.Reg == dwarfRSP && savedBelow(row, thunkCFA) && row.CFA.Off == thunkCFA {
		return cfi.NoInfo
	}
	return why
}

// thunkCFAs finds what gcc writes of thunks' bodies in a call frame program.
type thunkCFAs struct{ m *module.Module }

// Omits implements cfi.Omitter.
func (t *thunkCFAs) Omits(pc uint64, off int64) bool {
	if off != thunkCFA {
		return false
	}
	_, ok := thunkAt(t.m, pc)
	return ok
}

// inThunk makes u.row that of a thunk's body. Where the thunk returns or calls, every
// register that a function preserves has the caller's value. Where it jumps, the
// function's own row holds, one word further from RSP.
func (u *Unwinder) inThunk(t thunk, into, addr uint64) cfi.Reason {
	row := &u.row
	switch {
	case t.drops && into == t.ret:
		thunkRow(row, 8)
	case t.drops || t.calls:
		thunkRow(row, thunkCFA)
	default:
		if why := u.machine.RowWithout(&u.thunks, u.thunks.m.CFI, addr, row); why != cfi.None || row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP {
			return why
		}
		for c := range row.Regs[:dwarfRA] {
			if r := &row.Regs[c]; r.Kind == cfi.Offset && r.Off < -row.CFA.Off { // perhaps overwritten
				r.Kind = cfi.SameValue
			}
		}
		row.CFA.Off += 8
	}
	return cfi.None
}

// savedBelow reports whether a register is saved more than off bytes below the CFA.
func savedBelow(row *cfi.Row, off int64) bool {
	return slices.ContainsFunc(row.Regs[:dwarfRA], func(r cfi.Rule) bool { return r.Kind == cfi.Offset && r.Off < -off })
}

// thunkRow makes a row that of a leaf that has pushed words only.
func thunkRow(row *cfi.Row, off int64) {
	row.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: off}
	for c := range row.Regs[:dwarfRA] {
		if cfi.CalleeSaved(context.ArchAMD64, uint16(c)) && c != dwarfRSP {
			row.Set(c, cfi.Rule{Kind: cfi.SameValue})
		}
	}
}

// mayLie reports whether a common row may be one behind a thunk: its CFA came near to RSP in
// one step from further away, or it claims that a register is saved below RSP, where nothing
// is kept across a call.
func mayLie(row *cfi.CommonRow) bool {
	if row.Off != thunkCFA || row.Reg != dwarfRSP {
		return row.Fell
	}
	for w := row.Words; w != 0; w >>= 4 {
		if w&15 > thunkCFA/8 {
			return true
		}
	}
	return row.Fell
}
