package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// TestRuntimeResolve: glibc's _dl_runtime_resolve leaves out what PLT0 pushed at
// each of its instructions, the first one too, where its row does not show it.
func TestRuntimeResolve(t *testing.T) {
	const path = "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"
	f, err := elf.Open(path)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no " + path)
	}
	m := module.ELFFromFile(1, f, path, 0, 1<<30, 0)
	u := New()
	u.SetTable(module.NewTable(1, []module.Module{m}, nil))
	var machine cfi.Machine
	var row cfi.Row
	found := 0
	m.CFI.Each(func(fde cfi.FDE) bool {
		if machine.Row(m.CFI, fde.Lo+4, &row) != cfi.None || row.Regs[regLR].Kind != cfi.Offset ||
			row.Regs[regLR].Off != 8 {
			return true
		}
		found++
		for at := fde.Lo; at < fde.Hi; at += 4 {
			if r := u.resolveCFI(&m, 0, at); r.kind != RuleSlots || r.saved&flagShift == 0 {
				t.Errorf("%#x: rule %v, shifted %v", at, r.kind, r.saved&flagShift != 0)
			}
		}
		return true
	})
	if found == 0 {
		t.Skip("SKIPPED-CHECK: " + path + " has no such function")
	}
}

// TestPopped: a register that a row lists below SP, where a signal would overwrite it, has
// already been loaded.
func TestPopped(t *testing.T) {
	program := []byte{
		0x0e, 80, 0x9d, 10, 0x9e, 9, 0x93, 2, // CFA=SP+80; x29, x30 and x19 at CFA-80, -72 and -16
		0x44, 0x0e, 0, // behind an instruction: CFA=SP+0
	}
	odd := append(append([]byte{}, program...), 0x16,
		20, 1, 0x30) // x20 is 0, by an expression: no rule of slots
	for _, c := range []struct {
		name    string
		program []byte
		at      uint64
		kind    Kind
		sp, x19 uint64
	}{
		{"saved", program, 0, RuleSlots, sp0 + 80, 19},
		{"popped", program, 4, RuleSlots, sp0, 0x1919},
		{"popped, by the interpreter", odd, 4, RuleCFI, sp0, 0x1919},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, regs := unwinder(makeTable(t, nil, fn{Program: c.program})), newStack(),
				start(textBias+textLo+c.at, sp0)
			regs.X[19], regs.X[30] = 0x1919, codeCall
			regs.Known |= 1<<19 | 1<<30
			for at := uint64(sp0 - 128); at < sp0+128; at += 8 {
				s.Set(at, 0xdead)
			}
			s.Set(sp0+64, 19)
			s.Set(sp0+8, codeCall)
			r := u.lookup(unwind.Address{IP: regs.PC, Exact: true})
			expect.True(t, r.Kind() == c.kind, "rule %v", r.Kind())
			var f unwind.Frame
			_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && regs.PC == codeCall && regs.Sp == c.sp &&
				regs.X[19] == c.x19 && regs.Known>>19&1 != 0,
				"%v: pc %#x, sp %#x, x19 %#x", stop, regs.PC, regs.Sp, regs.X[19])
		})
	}
}

// TestTrampolineWithRow: the CFI of the signal trampoline in the vdso is wrong before Linux 5.8. It finds the
// caller through x29. The walker ignores it and takes the registers that the kernel saved.
func TestTrampolineWithRow(t *testing.T) {
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	cie.Signal = true
	frames.CIE(&cie)
	// CFA=x29; x29 at CFA, x30 at CFA+8 (arch/arm64/kernel/vdso/sigreturn.S)
	frames.FDE(&cie, codeLo-textBias+4, 8, 0x0c, 29, 0, 0x9d, 0, 0x11, 30, 0x7f)
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	u := unwinder(module.NewTable(1, []module.Module{{Start: textBias, End: textBias + 0x10000,
		Bias: textBias, CFI: table, ELF: image(t, []uint32{insNop, insMovX8Sigreturn, insSVC})}}, nil))
	for _, pc := range []uint64{codeLo + 4, codeLo + 8} {
		s, r := newStack(), start(pc, sp0)
		for i := range uint64(31) {
			s.Set(sp0+sigX0+8*i, 0x5000+i)
		}
		s.Set(sp0+sigSP, sp0+0x1400)
		s.Set(sp0+sigPC, codeCall)
		r.X[regFP] = sp0 + 0x1300
		s.Set(sp0+0x1300, 0x5000+regFP)
		s.Set(sp0+0x1308, codeCall)
		at := stateOf(&r, true)
		var f unwind.Frame
		stop := u.Step(&at, s.Window(), &unwind.Bounds{Low: stackLow, High: stackLow + stackSize}, &f)
		got := at.Regs.ARM64
		expect.True(t, stop == unwind.StopNone && at.Exact && f.Kind == unwind.KindSignal &&
			got.PC == codeCall && got.Sp == sp0+0x1400 && got.X[regLR] == 0x5000+regLR,
			"%v, pc %#x, sp %#x, x30 %#x", stop, got.PC, got.Sp, got.X[regLR])
	}
}
