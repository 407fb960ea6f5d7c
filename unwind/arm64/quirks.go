package arm64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Call frame information that is known to contradict its code.

// ignoresPLT0 recognises glibc's _dl_runtime_resolve and _dl_runtime_profile
// (sysdeps/aarch64/dl-trampoline.S, seen in 2.36): they are entered by a jump
// from PLT0, which has pushed x16 and x30, but their CFA leaves these 16 bytes
// out. The first says itself that the return address was saved above its CFA,
// which no real frame does; the second is known by its first instructions.
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

// contradicts recognises rows of the CLR's own assembly whose CFA is x29's and which
// have lost where that was saved: macros of epilogs write them, of which one lowers such
// a CFA with the stack pointer and none says that x29 is restored (dotnet/runtime
// src/coreclr/pal/inc/unixasmmacrosarm64.inc, EPILOG_STACK_FREE and
// EPILOG_RESTORE_REG_PAIR_INDEXED, seen in 10.0). Of 144 such rows none is right. A
// compiler's row of a CFA of x29 has both registers in the frame record that x29 points
// to, whose distance from the CFA is the rule's own.
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

// forgets recognises rows behind a call by which x30 has not been saved, as the call would
// return into itself then. clang writes them where it has moved a function's parts (dotnet
// 10.0.9, libcoreclr's 0x81b51c and a hundred others), which begin with the rows of an epilog.
func forgets(row *cfi.Row) bool {
	return !row.FDE.Signal && row.FDE.RA == regLR && row.CFA.Kind == cfi.RegisterOffset && inRegister(row)
}

// inRegister reports whether a row has the return address still in x30.
func inRegister(row *cfi.Row) bool {
	lr := row.Regs[regLR].Kind
	return lr == cfi.Unspecified || lr == cfi.SameValue
}

// popped mends a row by which registers are saved below SP. Nothing is kept there: a signal
// would be delivered over it. So they have been loaded again, the stack pointer has risen
// behind them, and the row has not been told: clang's at an epilog's autiasp (seen in 19),
// after which it takes all back.
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

// beginsResolve reports whether addr is the first instruction of
// _dl_runtime_resolve, whose row does not say yet where the return address is
// saved: the next one's does.
func (u *Unwinder) beginsResolve(m *module.Module, addr uint64) bool {
	row := &u.row
	return u.machine.Row(m.CFI, addr+4-m.CFIBias(), row) == cfi.None && row.Regs[regLR].Kind == cfi.Offset && row.Regs[regLR].Off == 8 &&
		row.CFA.Kind == cfi.RegisterOffset && row.CFA.Reg == regSP
}

// isResolveProfile looks for nop; sub sp, sp, #496; stp x29, x30, [sp].
func isResolveProfile(m *module.Module, addr uint64) bool {
	const stpFPLR = 0xa9007bfd
	w, ok := codeWord(m, addr, nil)
	if ok && w == insNop {
		addr += 4
		w, ok = codeWord(m, addr, nil)
	}
	if !ok || w != insResolveProfile {
		return false
	}
	w, ok = codeWord(m, addr+4, nil)
	third, ok3 := codeWord(m, addr+8, nil)
	return ok && ok3 && w == stpFPLR && third == 0x910003fd
}
