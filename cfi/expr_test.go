package cfi

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func exprEnv() *ExprEnv {
	env := &ExprEnv{Known: 1<<17 - 1, CFA: 0x7000, Bias: 0x10000}
	for i := range env.Regs {
		env.Regs[i] = uint64(i) * 0x100
	}
	env.Mem = memory.New(memory.Run{Addr: 0x1000, Data: []byte{1, 2, 3, 4, 5, 6, 7, 0x88, 9, 10}})
	return env
}

func lits(n ...uint8) []byte {
	var out []byte
	for _, v := range n {
		out = append(out, DW_OP_lit0+v)
	}
	return out
}

func ops(prefix []byte, more ...uint8) []byte { return append(prefix, more...) }

func TestExprOperations(t *testing.T) {
	minus := func(v int64) []byte { return new(asm).u8(DW_OP_consts).sleb(v).b }
	for _, c := range []struct {
		name string
		expr []byte
		want uint64
	}{
		{"lit31", []byte{DW_OP_lit31}, 31},
		{"addr", new(asm).u8(DW_OP_addr).u64(0x20).b, 0x10020},
		{"const1u", []byte{DW_OP_const1u, 0xff}, 0xff},
		{"const1s", []byte{DW_OP_const1s, 0xff}, ^uint64(0)},
		{"const2u", []byte{DW_OP_const2u, 0xfe, 0xff}, 0xfffe},
		{"const2s", []byte{DW_OP_const2s, 0xfe, 0xff}, ^uint64(1)},
		{"const4u", []byte{DW_OP_const4u, 0xfe, 0xff, 0xff, 0xff}, 0xfffffffe},
		{"const4s", []byte{DW_OP_const4s, 0xfe, 0xff, 0xff, 0xff}, ^uint64(1)},
		{"const8u", new(asm).u8(DW_OP_const8u).u64(1 << 63).b, 1 << 63},
		{"const8s", new(asm).u8(DW_OP_const8s).u64(1 << 63).b, 1 << 63},
		{"constu", []byte{DW_OP_constu, 0x80, 1}, 0x80},
		{"consts", minus(-2), ^uint64(1)},
		{"breg", []byte{DW_OP_breg0 + 7, 0x78}, 0x700 - 8},
		{"bregx", []byte{DW_OP_bregx, 16, 8}, 0x1008},
		{"dup", ops(lits(3), DW_OP_dup, DW_OP_plus), 6},
		{"drop", ops(lits(3, 4), DW_OP_drop), 3},
		{"over", ops(lits(3, 4), DW_OP_over, DW_OP_minus), 1},
		{"pick", ops(lits(3, 4, 5), DW_OP_pick, 2), 3},
		{"swap", ops(lits(9, 4), DW_OP_swap, DW_OP_minus), ^uint64(4)},
		{"rot: the top goes third", ops(lits(1, 2, 3), DW_OP_rot), 2},
		{"rot: the second is the old third", ops(lits(1, 2, 3), DW_OP_rot, DW_OP_drop), 1},
		{"rot: the third is the old top", ops(lits(1, 2, 3), DW_OP_rot, DW_OP_drop, DW_OP_drop), 3},
		{"abs", ops(minus(-5), DW_OP_abs), 5},
		{"neg", ops(lits(5), DW_OP_neg), ^uint64(4)},
		{"not", ops(lits(5), DW_OP_not), ^uint64(5)},
		{"and", ops(lits(6, 3), DW_OP_and), 2},
		{"or", ops(lits(6, 3), DW_OP_or), 7},
		{"xor", ops(lits(6, 3), DW_OP_xor), 5},
		{"plus", ops(lits(6, 3), DW_OP_plus), 9},
		{"minus", ops(lits(6, 3), DW_OP_minus), 3},
		{"mul", ops(lits(6, 3), DW_OP_mul), 18},
		{"div is signed", ops(append(minus(-7), DW_OP_lit0+2), DW_OP_div), ^uint64(2)},
		{"div by -1 of the least number",
			ops(append(new(asm).u8(DW_OP_const8u).u64(1<<63).b, minus(-1)...), DW_OP_div), 1 << 63},
		{"mod is unsigned", ops(append(minus(-1), DW_OP_lit0+16), DW_OP_mod), 15},
		{"plus_uconst", ops(lits(1), DW_OP_plus_uconst, 0x80, 1), 0x81},
		{"plus wraps", ops(minus(-1), DW_OP_plus_uconst, 2), 1},
		{"shl", ops(lits(1, 4), DW_OP_shl), 16},
		{"shl by 64", ops(append(lits(1), DW_OP_const1u, 64), DW_OP_shl), 0},
		{"shr", ops(append(minus(-1), DW_OP_const1u, 60), DW_OP_shr), 15},
		{"shra", ops(append(minus(-16), DW_OP_lit0+2), DW_OP_shra), ^uint64(3)},
		{"shra by 200", ops(append(minus(-16), DW_OP_const1u, 200), DW_OP_shra), ^uint64(0)},
		{"eq", ops(lits(2, 2), DW_OP_eq), 1},
		{"ne", ops(lits(2, 2), DW_OP_ne), 0},
		{"ge", ops(lits(2, 2), DW_OP_ge), 1},
		{"gt", ops(lits(3, 2), DW_OP_gt), 1},
		{"le", ops(lits(3, 2), DW_OP_le), 0},
		{"lt is signed", ops(append(minus(-1), DW_OP_lit0), DW_OP_lt), 1},
		{"skip", []byte{DW_OP_lit0 + 1, DW_OP_skip, 1, 0, DW_OP_lit0 + 9, DW_OP_nop}, 1},
		{"bra taken", []byte{DW_OP_lit0 + 1, DW_OP_lit0 + 1, DW_OP_bra, 1, 0, DW_OP_lit0 + 9}, 1},
		{"bra not taken", []byte{DW_OP_lit0 + 1, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit0 + 9}, 9},
		{"skip to the end", []byte{DW_OP_lit0 + 1, DW_OP_skip, 0, 0}, 1},
		{"a loop that ends", []byte{DW_OP_lit0 + 5, DW_OP_lit0 + 1, DW_OP_minus, DW_OP_dup, DW_OP_bra,
			0xfa, 0xff, DW_OP_lit0 + 7}, 7},
		{"deref", new(asm).u8(DW_OP_const2u).u16(0x1000).u8(DW_OP_deref).b, 0x8807060504030201},
		{"deref_size 1", new(asm).u8(DW_OP_const2u).u16(0x1009).u8(DW_OP_deref_size, 1).b, 10},
		{"deref_size 2", new(asm).u8(DW_OP_const2u).u16(0x1000).u8(DW_OP_deref_size, 2).b, 0x201},
		{"deref_size 4 does not extend the sign",
			new(asm).u8(DW_OP_const2u).u16(0x1004).u8(DW_OP_deref_size, 4).b, 0x88070605},
		{"the PLT's CFA", []byte{DW_OP_breg0 + 7, 8, DW_OP_breg0 + 16, 0, DW_OP_lit0 + 15, DW_OP_and,
			DW_OP_lit0 + 11, DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus}, 0x708},
	} {
		got, why := Eval(c.expr, exprEnv())
		expect.True(t, got == c.want && why == None, "%s: %#x %v, want %#x", c.name, got, why, c.want)
	}
}

func TestExprPushCFA(t *testing.T) {
	env := exprEnv()
	env.PushCFA = true
	v, why := Eval([]byte{DW_OP_plus_uconst, 8}, env)
	expect.True(t, v == 0x7008 && why == None, "%#x %v", v, why)
	v, why = Eval(nil, env)
	expect.True(t, v == 0x7000 && why == None, "empty: %#x %v", v, why)
}

func TestExprErrors(t *testing.T) {
	deep := make([]byte, MaxExprStack+1)
	for i := range deep {
		deep[i] = DW_OP_lit0
	}
	all := func(v ...uint8) []byte { return v }
	for _, c := range []struct {
		name string
		expr []byte
		want Reason
	}{
		{"empty", nil, BadExpression},
		{"unknown operation", all(0xe0), BadExpression},
		{"reserved operation", all(0x00), BadExpression},
		{"fbreg", all(0x91, 0), BadExpression},
		{"call_frame_cfa", all(DW_OP_call_frame_cfa), BadExpression},
		{"push_object_address", all(0x97), BadExpression},
		{"piece", all(0x93, 8), BadExpression},
		{"reg0", all(0x50), BadExpression},
		{"xderef", all(DW_OP_lit0, DW_OP_lit0, 0x18), BadExpression},
		{"deep stack", deep, TooDeep},
		{"endless skip", all(DW_OP_skip, 0xfd, 0xff), TooManySteps},
		{"endless bra", all(DW_OP_lit0+1, DW_OP_bra, 0xfc, 0xff), TooManySteps},
		{"skip before the start", all(DW_OP_skip, 0xfc, 0xff), BadExpression},
		{"skip past the end", all(DW_OP_skip, 1, 0), BadExpression},
		{"bra on nothing", all(DW_OP_bra, 0, 0), BadExpression},
		{"dup on nothing", all(DW_OP_dup), BadExpression},
		{"drop on nothing", all(DW_OP_drop), BadExpression},
		{"over on one", all(DW_OP_lit0, DW_OP_over), BadExpression},
		{"swap on one", all(DW_OP_lit0, DW_OP_swap), BadExpression},
		{"rot on two", all(DW_OP_lit0, DW_OP_lit0, DW_OP_rot), BadExpression},
		{"pick too deep", all(DW_OP_lit0, DW_OP_pick, 1), BadExpression},
		{"plus on one", all(DW_OP_lit0, DW_OP_plus), BadExpression},
		{"neg on nothing", all(DW_OP_neg), BadExpression},
		{"division by zero", all(DW_OP_lit0, DW_OP_lit0, DW_OP_div), BadExpression},
		{"modulo zero", all(DW_OP_lit0, DW_OP_lit0, DW_OP_mod), BadExpression},
		{"deref of unmapped", all(DW_OP_lit0, DW_OP_deref), Unreadable},
		{"deref across the end", new(asm).u8(DW_OP_const2u).u16(0x1003).u8(DW_OP_deref).b, Unreadable},
		{"deref that wraps", all(DW_OP_const1s, 0xff, DW_OP_deref), Unreadable},
		{"deref_size 0", all(DW_OP_lit0, DW_OP_deref_size, 0), BadExpression},
		{"deref_size 9", all(DW_OP_lit0, DW_OP_deref_size, 9), BadExpression},
		{"unknown register", all(DW_OP_breg0+20, 0), UnknownRegister},
		{"register out of range", all(DW_OP_bregx, 0xff, 0x7f, 0), UnknownRegister},
		{"overlong operand", all(DW_OP_constu, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			0x80, 0x80, 0x80, 0), Truncated},
	} {
		_, why := Eval(c.expr, exprEnv())
		expect.True(t, why == c.want, "%s: %v, want %v", c.name, why, c.want)
	}
	_, why := Eval(all(DW_OP_lit0, DW_OP_deref), &ExprEnv{})
	expect.True(t, why == Unreadable, "no memory: %v", why)
}

// TestExprTruncated cuts every operand.
func TestExprTruncated(t *testing.T) {
	for op, n := range map[uint8]int{
		DW_OP_addr: 8, DW_OP_const1u: 1, DW_OP_const1s: 1, DW_OP_const2u: 2, DW_OP_const2s: 2,
		DW_OP_const4u: 4, DW_OP_const4s: 4,
		DW_OP_const8u: 8, DW_OP_const8s: 8, DW_OP_constu: 1, DW_OP_consts: 1, DW_OP_breg0: 1,
		DW_OP_bregx: 2, DW_OP_pick: 1,
		DW_OP_plus_uconst: 1, DW_OP_bra: 2, DW_OP_skip: 2, DW_OP_deref_size: 1,
	} {
		for cut := 0; cut < n; cut++ {
			e := append([]byte{DW_OP_lit0 + 1, DW_OP_lit0 + 1, op}, make([]byte, cut)...)
			_, why := Eval(e, exprEnv())
			expect.True(t, why == Truncated, "op %#x with %d of %d operand bytes: %v", op, cut, n, why)
		}
	}
}
