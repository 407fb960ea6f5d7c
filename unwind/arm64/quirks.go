package arm64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Unwind data that contradicts its code.

// ignoresPLT0 recognizes glibc's _dl_runtime_resolve and _dl_runtime_profile
// (sysdeps/aarch64/dl-trampoline.S, seen in 2.36): they are entered by a jump from PLT0, which has pushed x16
// and x30, but their CFA omits these 16 bytes. The first one's row lists the return address as saved above
// the CFA, which is impossible for a real frame; the second is recognized by its first instructions.
func ignoresPLT0(m *module.Module, row *cfi.Row) bool {
	if ra := &row.Regs[regLR]; ra.Kind == cfi.Offset {
		if ra.Off == 8 && row.CFA.Kind == cfi.RegisterOffset && row.CFA.Reg == regSP {
			return true
		}
		if ra.Off != -488 {
			return false
		}
	}
	return isResolveProfile(m, row.FDE.Lo+m.Bias)
}

// contradicts recognizes wrong rows with a CFA relative to x29: those that have the return address in x30, or
// list x29 as saved elsewhere than at the address in x29. In a compiler's row with such a CFA, both registers
// are in the frame record to which x29 points. The CLR's macros for epilogs write the wrong ones: one lowers
// the CFA together with the stack pointer, and none marks x29 as restored (dotnet/runtime
// src/coreclr/pal/inc/unixasmmacrosarm64.inc, EPILOG_STACK_FREE and EPILOG_RESTORE_REG_PAIR_INDEXED, seen in
// 10.0).
func contradicts(row *cfi.Row) bool {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != regFP {
		return false
	}
	fp := &row.Regs[regFP]
	if inRegister(row) {
		return true
	}
	return fp.Kind == cfi.Offset && fp.Off != -row.CFA.Off
}

// forgets recognizes rows after a call that have the return address in x30: the call would return into
// itself. clang writes such rows (seen in libcoreclr of .NET 10.0.9). It does so if it moves a part of a
// function elsewhere, and the part begins with the rows of an epilog.
func forgets(row *cfi.Row) bool {
	return !row.FDE.Signal && row.FDE.RA == regLR && row.CFA.Kind == cfi.RegisterOffset && inRegister(row)
}

// inRegister reports whether a row has the return address in x30.
func inRegister(row *cfi.Row) bool { return unsaved(row.Regs[regLR].Kind) }

// unsaved reports whether the caller's value is in the register itself, by a rule of this kind.
func unsaved(k cfi.Kind) bool { return k == cfi.Unspecified || k == cfi.SameValue }

// popped corrects a row that lists registers as saved below SP. Nothing survives there, because a signal
// would overwrite it. So the registers have already been loaded and the stack pointer raised, but the row
// does not reflect it. clang writes such rows at an epilog's autiasp (seen in 19).
func popped(row *cfi.Row) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != regSP {
		return
	}
	for c := range row.Regs {
		if r := &row.Regs[c]; r.Kind == cfi.Offset && row.CFA.Off+r.Off < 0 {
			*r = cfi.Rule{Kind: cfi.SameValue}
		}
	}
}

// beginsResolve reports whether the row of the instruction after addr is that of _dl_runtime_resolve. If addr
// begins a function, it is then that function's first instruction, whose own row does not list the saved
// return address yet.
func (u *Unwinder) beginsResolve(m *module.Module, addr uint64) bool {
	row := &u.row
	return u.machine.Row(m.CFI, addr+4-m.CFIBias(), row) == cfi.None && row.Regs[regLR].Kind == cfi.Offset &&
		row.Regs[regLR].Off == 8 &&
		row.CFA.Kind == cfi.RegisterOffset && row.CFA.Reg == regSP
}

// resolveProfile is sub sp, sp, #496; stp x29, x30, [sp]; mov x29, sp.
var resolveProfile = []byte{0xff, 0xc3, 0x07, 0xd1, 0xfd, 0x7b, 0x00, 0xa9, 0xfd, 0x03, 0x00, 0x91}

// isResolveProfile reports whether resolveProfile is at addr, maybe after a nop.
func isResolveProfile(m *module.Module, addr uint64) bool {
	if w, _ := codeWord(m, addr, nil); w == insNop {
		addr += 4
	}
	return bytes.Equal(m.Bytes(addr, len(resolveProfile)), resolveProfile)
}

// inCallThunk recognizes gcc's thunk for calls through a register: mov x16, xN; br x16; dsb sy; isb
// (-mharden-sls, seen in 12). Functions with such calls contain it, and their rows omit that it is called.
func inCallThunk(m *module.Module, pc uint64) bool {
	isMove := func(w uint32) bool { return w&^(31<<16) == 0xaa0003f0 }
	if w, _ := codeWord(m, pc, nil); isMove(w) {
		pc += 4
	} else if before, _ := codeWord(m, pc-4, nil); !isMove(before) {
		return false
	}
	for i, want := range [3]uint32{0xd61f0200, 0xd5033f9f, 0xd5033fdf} {
		if w, _ := codeWord(m, pc+4*uint64(i), nil); w != want {
			return false
		}
	}
	return true
}

// omitsSigning recognizes a Windows function whose first instruction, pacibsp or paciasp, has no unwind code
// (clang before 16). Its codes are one instruction off, and it saves a signed return address. A part of a
// function that has an entry of its own is not recognized, because it does not begin with that instruction.
func omitsSigning(m *module.Module, begin uint64, info *pearm64.Info) bool {
	w, _ := codeWord(m, begin, nil)
	return w|0x40 == insPACIBSP && !signs(info.Codes)
}

// signs reports whether the codes of a prolog, the first up to an end, contain pac_sign_lr.
func signs(codes []byte) bool {
	for len(codes) > 0 {
		c, why := pearm64.DecodeCode(codes)
		if why != pearm64.OK || c.Last() || c.Op == pearm64.PACSignLR {
			return c.Op == pearm64.PACSignLR
		}
		codes = codes[c.Size:]
	}
	return false
}
