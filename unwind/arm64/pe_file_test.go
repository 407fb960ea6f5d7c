package arm64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// TestStepThroughPEFile steps the way a walk does: from the module table to the
// image, its exception directory, the codes and the caller, with the rule cache
// and without.
func TestStepThroughPEFile(t *testing.T) {
	for _, file := range []string{"arm64-native", "arm64-packedx", "arm64-exec", "arm64-synth"} {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			cached, plain := New(), New()
			plain.DisableCache(true)
			points, wrong, gen := 0, 0, uint32(0)
			n, err := pevec.Each(file+".jsonl.gz", func(v *pevec.Vector) error {
				gen++
				base := uint64(v.Base)
				table := module.NewTable(gen,
					[]module.Module{{Start: base, End: base + 1<<32 - 1, Bias: base, PE: v.Image()}}, nil)
				cached.SetTable(table)
				plain.SetTable(table)
				for i := range v.Points {
					points++
					for _, u := range []*Unwinder{cached, plain, cached} {
						why, err := stepVector(u, v, &v.Points[i], &stacks)
						if err != nil {
							return err
						}
						if why != "" {
							if wrong++; wrong <= 10 {
								t.Errorf("%s point %d (%s): %s", v.ID, i, v.Points[i].Ins, why)
							}
							break
						}
					}
				}
				return nil
			})
			if errors.Is(err, pevec.ErrAbsent) {
				t.Skip("SKIPPED-CHECK: ", err)
			}
			must.True(t, err == nil && n != 0, "%v %v", n, err)
			expect.Figures(t, wrong == 0, "%s: %d points, %d wrong", file, points, wrong)
		})
	}
}

// stepVector steps from a point. Its state is that before the instruction at pc
// runs, also after a call: some calls in MSVC's epilogs pop the stack, so that
// the codes of the call instruction do not describe the state after it.
func stepVector(u *Unwinder, v *pevec.Vector, p *pevec.Point, stacks *pevec.Stacks) (why string, err error) {
	mem, err := stacks.Window(v, p)
	if err != nil {
		return "", err
	}
	regs, err := v.RegsARM64(p)
	if err != nil {
		return "", err
	}
	want, err := v.WantARM64(p, &regs)
	if err != nil {
		return "", err
	}
	var f unwind.Frame
	if _, stop := stepOf(u, &regs, true, mem, nil, &f); stop != unwind.StopNone {
		return stop.String(), nil
	}
	var info pearm64.Info
	if begin, _, fault := v.Image().ARM64().Find(uint32(*p.PC), new(pearm64.Buffer), &info); fault.OK() &&
		f.CFA-f.SP < info.LeastFrame(uint32(*p.PC)-begin) {
		return "its frame is too small", nil
	}
	return pevec.DiffARM64(&regs, &want), nil
}

// If the exception directory of a PE image does not cover an address, its DWARF
// sections are used: those of a Go program, or of LLVM without SEH. If they do not
// cover it either, the leaf rule applies. It is doubtful if the code is missing.
func TestPEByDWARF(t *testing.T) {
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, textLo, fnSize, 0x0e, 32, 0x9d, 4, 0x9e, 3) // CFA=SP+32, x29 at CFA-32, x30 at CFA-24
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x9000}))(t)
	f := pe.FromBlocks(pe.MachineARM64, nil, nil)
	m := module.Module{ID: 1, Start: textBias, End: textBias + 0x10000, Bias: textBias, PE: f, CFI: table}
	u := unwinder(module.NewTable(77, []module.Module{m}, nil))
	s := newStack()
	s.Set(sp0, 0x2929)
	s.Set(sp0+8, codeCall)
	for _, c := range []struct {
		name  string
		pc    uint64
		sp    uint64
		fp    uint64
		trust unwind.Trust
	}{
		{"covered by an FDE", textBias + textLo + 0x20, sp0 + 32, 0x2929, unwind.TrustCFI},
		{"covered by nothing, in an image without its code", textBias + textLo + 0x400,
			sp0, 0x1111, unwind.TrustCode},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cached := range []bool{false, true} {
				u.DisableCache(!cached)
				regs := start(c.pc, sp0)
				regs.X[29], regs.X[30] = 0x1111, codeCall
				regs.Known |= 1<<29 | 1<<30
				var fr unwind.Frame
				_, stop := stepOf(u, &regs, true, s.Window(), nil, &fr)
				expect.True(t, stop == unwind.StopNone && regs.PC == codeCall && regs.Sp == c.sp &&
					regs.X[29] == c.fp && u.trust == c.trust,
					"cached %v: %v, pc %#x sp %#x x29 %#x by %v", cached, stop, regs.PC, regs.Sp, regs.X[29],
					u.trust)
			}
		})
	}
}
