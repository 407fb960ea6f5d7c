package cfi

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// Bounds of Eval.
const (
	MaxExprStack = 64
	MaxExprSteps = 4096
)

// ExprEnv is the input of an expression. Regs are in DWARF numbering: x86-64 0-16, AArch64 0-31 (31 is SP).
type ExprEnv struct {
	Regs    [33]uint64
	Known   uint64         // bit i: Regs[i] is known
	CFA     uint64         // pushed first if PushCFA
	PushCFA bool           // true for Expression and ValExpression, false for the CFA's own rule
	Bias    uint64         // added to DW_OP_addr
	Mem     *memory.Window // nil: every read fails

	stack [MaxExprStack]uint64 // Eval's stack, here so that it need not be cleared each time
}

// Operations (DWARF 5 section 7.7.1).
const (
	DW_OP_addr           = 0x03
	DW_OP_deref          = 0x06
	DW_OP_const1u        = 0x08
	DW_OP_const1s        = 0x09
	DW_OP_const2u        = 0x0a
	DW_OP_const2s        = 0x0b
	DW_OP_const4u        = 0x0c
	DW_OP_const4s        = 0x0d
	DW_OP_const8u        = 0x0e
	DW_OP_const8s        = 0x0f
	DW_OP_constu         = 0x10
	DW_OP_consts         = 0x11
	DW_OP_dup            = 0x12
	DW_OP_drop           = 0x13
	DW_OP_over           = 0x14
	DW_OP_pick           = 0x15
	DW_OP_swap           = 0x16
	DW_OP_rot            = 0x17
	DW_OP_abs            = 0x19
	DW_OP_and            = 0x1a
	DW_OP_div            = 0x1b
	DW_OP_minus          = 0x1c
	DW_OP_mod            = 0x1d
	DW_OP_mul            = 0x1e
	DW_OP_neg            = 0x1f
	DW_OP_not            = 0x20
	DW_OP_or             = 0x21
	DW_OP_plus           = 0x22
	DW_OP_plus_uconst    = 0x23
	DW_OP_shl            = 0x24
	DW_OP_shr            = 0x25
	DW_OP_shra           = 0x26
	DW_OP_xor            = 0x27
	DW_OP_bra            = 0x28
	DW_OP_eq             = 0x29
	DW_OP_ge             = 0x2a
	DW_OP_gt             = 0x2b
	DW_OP_le             = 0x2c
	DW_OP_lt             = 0x2d
	DW_OP_ne             = 0x2e
	DW_OP_skip           = 0x2f
	DW_OP_lit0           = 0x30
	DW_OP_lit31          = 0x4f
	DW_OP_breg0          = 0x70
	DW_OP_breg31         = 0x8f
	DW_OP_bregx          = 0x92
	DW_OP_deref_size     = 0x94
	DW_OP_nop            = 0x96
	DW_OP_call_frame_cfa = 0x9c
)

// Eval computes a DWARF expression. The result is the top of its stack; an empty stack is BadExpression. Eval
// allocates nothing and ends within MaxExprSteps operations. It refuses operations without a meaning in call
// frame information (fbreg, call_frame_cfa, calls, pieces, thread-local storage).
func Eval(expr []byte, env *ExprEnv) (uint64, Reason) {
	m := evaluator{r: buf.At(expr, 0), stack: &env.stack}
	if env.PushCFA {
		m.push(env.CFA)
	}
	for steps := 0; m.r.Len() > 0; steps++ {
		if steps == MaxExprSteps {
			return 0, TooManySteps
		}
		m.step(env)
		if !m.r.OK() {
			return 0, Truncated
		}
		if m.why != None {
			return 0, m.why
		}
	}
	v := m.pop()
	return v, m.why
}

// evaluator is the stack machine; why is its first failure.
type evaluator struct {
	r     buf.Reader
	n     int
	why   Reason
	stack *[MaxExprStack]uint64
}

func (m *evaluator) fail(why Reason) {
	if m.why == None {
		m.why = why
	}
}

func (m *evaluator) push(v uint64) {
	if m.n == MaxExprStack {
		m.fail(TooDeep)
		return
	}
	m.stack[m.n] = v
	m.n++
}

func (m *evaluator) pop() uint64 {
	if m.n == 0 {
		m.fail(BadExpression)
		return 0
	}
	m.n--
	return m.stack[m.n]
}

func (m *evaluator) step(env *ExprEnv) {
	op := m.r.U8()
	switch {
	case op >= DW_OP_lit0 && op <= DW_OP_lit31:
		m.push(uint64(op - DW_OP_lit0))
	case op >= DW_OP_breg0 && op <= DW_OP_breg31:
		m.breg(env, uint64(op-DW_OP_breg0))
	case op == DW_OP_bregx:
		m.breg(env, m.r.ULEB())
	case op >= DW_OP_const1u && op <= DW_OP_consts || op == DW_OP_addr:
		m.constant(op, env)
	case op >= DW_OP_dup && op <= DW_OP_rot:
		m.shuffle(op)
	case op == DW_OP_deref:
		m.load(env, 8)
	case op == DW_OP_deref_size:
		m.load(env, int(m.r.U8()))
	case op == DW_OP_bra || op == DW_OP_skip:
		m.jump(op)
	case op == DW_OP_nop:
	case op == DW_OP_abs || op == DW_OP_neg || op == DW_OP_not || op == DW_OP_plus_uconst:
		m.unary(op)
	case op >= DW_OP_and && op <= DW_OP_xor || op >= DW_OP_eq && op <= DW_OP_ne:
		b := m.pop()
		a := m.pop()
		m.push(m.binary(op, a, b))
	default:
		m.fail(BadExpression)
	}
}

func (m *evaluator) breg(env *ExprEnv, reg uint64) {
	off := m.r.SLEB()
	if reg >= uint64(len(env.Regs)) || env.Known>>reg&1 == 0 {
		m.fail(UnknownRegister)
		return
	}
	m.push(env.Regs[reg] + uint64(off))
}

func (m *evaluator) constant(op uint8, env *ExprEnv) {
	var v uint64
	switch op {
	case DW_OP_addr:
		v = m.r.U64() + env.Bias
	case DW_OP_const1u:
		v = uint64(m.r.U8())
	case DW_OP_const1s:
		v = uint64(int64(int8(m.r.U8())))
	case DW_OP_const2u:
		v = uint64(m.r.U16())
	case DW_OP_const2s:
		v = uint64(int64(int16(m.r.U16())))
	case DW_OP_const4u:
		v = uint64(m.r.U32())
	case DW_OP_const4s:
		v = uint64(int64(int32(m.r.U32())))
	case DW_OP_const8u, DW_OP_const8s:
		v = m.r.U64()
	case DW_OP_constu:
		v = m.r.ULEB()
	case DW_OP_consts:
		v = uint64(m.r.SLEB())
	}
	m.push(v)
}

// shuffle executes operations that only move stack entries.
func (m *evaluator) shuffle(op uint8) {
	need, depth := 1, 0
	switch op {
	case DW_OP_over, DW_OP_swap:
		need, depth = 2, 1
	case DW_OP_rot:
		need = 3
	case DW_OP_pick:
		depth = int(m.r.U8())
		need = depth + 1
	}
	if m.n < need {
		m.fail(BadExpression)
		return
	}
	top := m.n - 1
	switch op {
	case DW_OP_dup, DW_OP_over, DW_OP_pick:
		m.push(m.stack[top-depth])
	case DW_OP_drop:
		m.n--
	case DW_OP_swap:
		m.stack[top], m.stack[top-1] = m.stack[top-1], m.stack[top]
	case DW_OP_rot: // the top goes below the two under it
		m.stack[top], m.stack[top-1], m.stack[top-2] = m.stack[top-1], m.stack[top-2], m.stack[top]
	}
}

// load replaces an address by the size bytes at it.
func (m *evaluator) load(env *ExprEnv, size int) {
	addr := m.pop()
	if size < 1 || size > 8 {
		m.fail(BadExpression)
		return
	}
	if m.why != None {
		return
	}
	if env.Mem == nil {
		m.fail(Unreadable)
		return
	}
	b, ok := env.Mem.Bytes(addr, size)
	if !ok {
		m.fail(Unreadable)
		return
	}
	var v uint64
	for i := size - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	m.push(v)
}

// jump moves by a signed 16-bit distance, which must stay inside the expression.
func (m *evaluator) jump(op uint8) {
	by := int(int16(m.r.U16()))
	if op == DW_OP_bra && m.pop() == 0 || !m.r.OK() || m.why != None {
		return
	}
	to := m.r.Pos() + by
	if to < 0 || to > len(m.r.Data) {
		m.fail(BadExpression)
		return
	}
	m.r = buf.At(m.r.Data, uint64(to))
}

func (m *evaluator) unary(op uint8) {
	v := m.pop()
	switch op {
	case DW_OP_abs:
		if int64(v) < 0 {
			v = -v
		}
	case DW_OP_neg:
		v = -v
	case DW_OP_not:
		v = ^v
	case DW_OP_plus_uconst:
		v += m.r.ULEB()
	}
	m.push(v)
}

func (m *evaluator) binary(op uint8, a, b uint64) uint64 {
	switch op {
	case DW_OP_and:
		return a & b
	case DW_OP_or:
		return a | b
	case DW_OP_xor:
		return a ^ b
	case DW_OP_plus:
		return a + b
	case DW_OP_minus:
		return a - b
	case DW_OP_mul:
		return a * b
	case DW_OP_div, DW_OP_mod:
		return m.divide(op, a, b)
	case DW_OP_shl:
		return a << b
	case DW_OP_shr:
		return a >> b
	case DW_OP_shra:
		return uint64(int64(a) >> b)
	}
	return compare(op, int64(a), int64(b))
}

// divide is signed for div and unsigned for mod (DWARF 5 section 2.5.1.4).
func (m *evaluator) divide(op uint8, a, b uint64) uint64 {
	if b == 0 {
		m.fail(BadExpression)
		return 0
	}
	if op == DW_OP_mod {
		_, rem := bits.Div64(0, a, b)
		return rem
	}
	if int64(b) == -1 {
		return -a // also for the one quotient that does not fit
	}
	return uint64(int64(a) / int64(b))
}

func compare(op uint8, a, b int64) uint64 {
	var is bool
	switch op {
	case DW_OP_eq:
		is = a == b
	case DW_OP_ge:
		is = a >= b
	case DW_OP_gt:
		is = a > b
	case DW_OP_le:
		is = a <= b
	case DW_OP_lt:
		is = a < b
	case DW_OP_ne:
		is = a != b
	}
	if is {
		return 1
	}
	return 0
}
