package cfi

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// plainRow is Machine.Row one instruction at a time.
func plainRow(m *Machine, t *Table, pc uint64, row *Row) (why Reason) {
	row.reset()
	p := program{arch: t.arch, sec: &t.secs[0], c: &t.cies[t.fdes[0].cie]}
	defer func() {
		if why != None {
			row.reset()
		}
		t.public(0, &row.FDE)
	}()
	if why = m.start(&p, &t.fdes[0], row); why != None {
		return why
	}
	for p.target = pc; p.r.Len() > 0 && !p.done; {
		if m.steps++; m.steps > MaxInstructions {
			return TooManySteps
		}
		why = m.instruction(&p, row)
		if !p.r.OK() {
			return Truncated
		}
		if why != None {
			return why
		}
	}
	if row.CFA.Kind == Unspecified {
		return BadRecord
	}
	if p.c.byGo(t.arch) {
		row.loseRegisters(t.arch)
	}
	return None
}

// randomProgram is mostly of what quick runs, with what it must leave alone between.
func randomProgram(r *rand.Rand) (code []byte) {
	for range r.Intn(24) {
		switch r.Intn(13) {
		case 0, 1:
			code = append(code, DW_CFA_advance_loc|byte(r.Intn(64)))
		case 2, 3:
			code = append(code, DW_CFA_offset|byte(r.Intn(64)), byte(r.Intn(256)))
		case 4, 5:
			code = append(code, DW_CFA_def_cfa_offset, byte(r.Intn(256)))
		case 6:
			code = append(code, DW_CFA_remember_state, DW_CFA_def_cfa_register, byte(r.Intn(32)))
		case 7:
			code = append(code, DW_CFA_restore_state)
		case 8:
			code = append(code, DW_CFA_advance_loc1, byte(r.Intn(256)))
		case 9:
			code = append(code, DW_CFA_def_cfa, byte(r.Intn(160)), byte(r.Intn(160)))
		case 10:
			code = append(code, DW_CFA_def_cfa_register, byte(r.Intn(160)))
		case 11:
			code = append(code, DW_CFA_nop)
		default:
			code = append(code, byte(r.Intn(256)), byte(r.Intn(256)))
		}
	}
	return code
}

// sameRow compares all that counts; cmp.Diff, at a thousand times the cost, shows what differs.
func sameRow(a, b *Row) bool {
	same := a.FDE == b.FDE && a.Lo == b.Lo && a.Hi == b.Hi && a.Used == b.Used && a.RASign == b.RASign &&
		sameRule(&a.CFA, &b.CFA)
	for c := range a.Regs {
		same = same && sameRule(&a.Regs[c], &b.Regs[c])
	}
	return same
}

func sameRule(a, b *Rule) bool {
	return a.Kind == b.Kind && a.Reg == b.Reg && a.Off == b.Off && bytes.Equal(a.Expr, b.Expr)
}

// Instructions that quick runs together have the same effect as one at a time, at every pc.
func TestQuick(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	ran := 0
	for range 4000 {
		code := randomProgram(r)
		var a asm
		off := a.begin()
		a.cieID().u8(1).str("").uleb([]uint64{1, 4, 1 << 33,
			1 << 63}[r.Intn(4)]).sleb(int64(r.Intn(17) - 8)).u8(16)
		a.raw([][]byte{{DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}, {DW_CFA_nop}}[r.Intn(8)/7]).end()
		a.simpleFDE(off, code...)
		for _, arch := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
			tab := table(t, arch, a.u32(0).b)
			var quick, plain Machine
			var got, want Row
			for _, pc := range []uint64{fnLo, fnLo + 1, fnLo + 40, fnLo + 41, fnHi - 1} {
				why, whyPlain := quick.Row(tab, pc, &got), plainRow(&plain, tab, pc, &want)
				if why != whyPlain || !sameRow(&got, &want) {
					t.Fatalf("% x at %#x: %v, one by one %v: %s", code, pc, why, whyPlain,
						cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(FDE{})))
				}
				if why == None {
					ran++
				}
			}
		}
	}
	expect.True(t, ran >= 4000, "only %d rows without a fault", ran)
}

// TestQuickIsBounded: the limit on instructions also stops a program of the most common ones.
func TestQuickIsBounded(t *testing.T) {
	tab := table(t, context.ArchAMD64, ehFrame(make([]byte, 16*MaxInstructions)...))
	var m Machine
	var row Row
	why := m.Row(tab, fnLo, &row)
	expect.True(t, why == TooManySteps && m.steps <= 2*MaxInstructions, "%v after %d steps", why, m.steps)
}
