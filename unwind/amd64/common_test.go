package amd64

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// commonProgram returns a random program of call frame information. Its functions save registers in the order
// in which a return hook pushes them, or in another one. Most rows are common ones, and some fit no rule.
func commonProgram(rnd *rand.Rand) (code []byte) {
	pushed := []byte{dwarfRBP, dwarfRBX, 15, 14, 13, 12} // by hijackPushes, behind rax
	for i, reg := range pushed[:rnd.IntN(len(pushed)+1)] {
		if rnd.IntN(12) == 0 {
			reg = byte(rnd.IntN(17))
		}
		code = append(code, 0x80|reg, byte(3+i+rnd.IntN(8)/7+rnd.IntN(40)/39*15))
	}
	code = append(code, cfi.DW_CFA_def_cfa_offset, byte(8*rnd.IntN(15)+rnd.IntN(12)/11))
	if rnd.IntN(4) == 0 {
		code = append(code, cfi.DW_CFA_def_cfa_register, []byte{dwarfRBP, dwarfRSP, dwarfRBX}[rnd.IntN(3)])
	}
	return code
}

// agrees reports whether a row that holds at a call may belong to code with these pushes.
func agrees(p *pushes, row *cfi.Row) bool {
	for i, word := range p.at {
		rule := &row.Regs[slotDWARF[i]]
		if word != 0 && rule.Kind != cfi.Unspecified && (rule.Kind != cfi.Offset || rule.Off != -8*word) {
			return false
		}
	}
	return row.CFA.Off >= 8*p.words
}

// TestCommonRules: for a return address, resolveCommon makes the same rule as the whole row does. The code of
// all functions begins like a return hook, so that this is tested for hooks too.
func TestCommonRules(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const n = 16
	said, all, hooked := 0, 0, 0
	for range 500 {
		fns, code := make([]fn, n), make([]byte, n*fnSize)
		for i := range fns {
			fns[i] = fn{Program: commonProgram(rnd), Signal: rnd.IntN(16) == 0}
			copy(code[i*fnSize:], hijackPushes)
		}
		f := must.Get(elf.New(elfasm.Code(elfasm.AMD64, textLo, code), "code"))(t)
		m := *makeTable(t, 1, fns...).At(0)
		m.ELF = f
		u := unwinder(module.NewTable(1, []module.Module{m}, nil))
		if rnd.IntN(2) == 0 {
			u.SetReturnHooks(testHooks)
		}
		for i := range fns {
			a := unwind.ReturnAddress(at(i))
			got, ok := u.resolveCommon(m.CFI, 0, a.Lookup()-m.Bias)
			var row cfi.Row
			u.machine.Row(m.CFI, a.Lookup()-m.Bias, &row)
			mayBeHook := row.CFA.Reg == dwarfRSP && slices.ContainsFunc(u.pushes, func(p pushes) bool {
				return agrees(&p, &row)
			})
			if row.CFA.Kind == cfi.RegisterOffset {
				expect.Equal(t, row.CFA.Reg == dwarfRSP && u.mayBeHook(slotsOf(&row), row.CFA.Off), mayBeHook,
					"% x: may be a hook", fns[i].Program)
			}
			want := u.resolveRow(&m, 0, a)
			switch k := want.Kind(); {
			case k == RuleSP && mayBeHook:
				hooked++
			case k == RuleSP || k == RuleBP:
				all++
			}
			if !ok {
				continue
			}
			if said++; got != want {
				t.Fatalf("% x: %#x, by the row %#x", fns[i].Program, got.bits, want.bits)
			}
		}
	}
	expect.Figures(t, said >= all*9/10 && hooked >= 100, "%d of %d rules, and %d of hooks", said, all, hooked)
}
