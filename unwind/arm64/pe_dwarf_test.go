package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// If the exception directory of a PE image does not cover an address, its DWARF
// sections are used: those of a Go program, or of LLVM without SEH. If they do not
// cover it either, the leaf rule applies. It is doubtful if the code is missing.
func TestPEByDWARF(t *testing.T) {
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, textLo, fnSize, 0x0e, 32, 0x9d, 4, 0x9e, 3) // CFA=SP+32, x29 at CFA-32, x30 at CFA-24
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64, EHFrame: frames.Bytes(), EHFrameAddr: 0x9000}))(t)
	f := pe.FromBlocks(pe.MachineARM64, nil, nil)
	m := module.Module{ID: 1, Start: textBias, End: textBias + 0x10000, Bias: textBias, PE: f, CFI: table}
	u := unwinder(module.NewTable(77, []module.Module{m}, nil))
	s := newStack()
	s.set(sp0, 0x2929)
	s.set(sp0+8, codeCall)
	for _, c := range []struct {
		name  string
		pc    uint64
		sp    uint64
		fp    uint64
		trust unwind.Trust
	}{
		{"covered by an FDE", textBias + textLo + 0x20, sp0 + 32, 0x2929, unwind.TrustCFI},
		{"covered by nothing, in an image without its code", textBias + textLo + 0x400, sp0, 0x1111, unwind.TrustCode},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cached := range []bool{false, true} {
				u.DisableCache(!cached)
				regs := start(c.pc, sp0)
				regs.X[29], regs.X[30] = 0x1111, codeCall
				regs.Known |= 1<<29 | 1<<30
				var fr unwind.Frame
				_, stop := stepOf(u, &regs, true, s.window(), nil, &fr)
				if stop != unwind.StopNone || regs.PC != codeCall || regs.Sp != c.sp || regs.X[29] != c.fp || u.by != c.trust {
					t.Errorf("cached %v: %v, pc %#x sp %#x x29 %#x by %v", cached, stop, regs.PC, regs.Sp, regs.X[29], u.by)
				}
			}
		})
	}
}
