package amd64

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"Rule", unsafe.Sizeof(Rule{}), 8},
		{"entry", unsafe.Sizeof(entry{}), 16},
	} {
		expect.True(t, c.got == c.want, "%s is %d bytes, want %d", c.name, c.got, c.want)
	}
	s := unsafe.Sizeof(Unwinder{})
	expect.True(t, s <= 512<<10, "an Unwinder takes %d bytes", s)
}

// effect is what one rule must do to a frame at function 0 with SP sp0.
type effect struct {
	name    string
	program []byte
	signal  bool
	kind    Kind // the rule it must become
	prepare func(s *stack, r *Registers)
	ip      uint64 // the caller's; 0: stop instead
	cfa, sp uint64 // sp 0: cfa
	saved   map[int]uint64
	lost    []int // registers that must be unknown
	stop    unwind.Stop
}

func expr(op byte, reg int, ops ...byte) []byte {
	b := []byte{op}
	if reg >= 0 {
		b = append(b, byte(reg))
	}
	return append(append(b, binary.AppendUvarint(nil, uint64(len(ops)))...), ops...)
}

var caller = at(1)

func putRA(addr uint64) func(*stack, *Registers) {
	return func(s *stack, r *Registers) { s.Set(addr, caller) }
}

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

var effects = []effect{
	{name: "leaf: CFA=RSP+8", kind: RuleSP, prepare: putRA(sp0), ip: caller, cfa: sp0 + 8},
	{name: "offset and slots",
		program: []byte{0x0e, 64, 0x80 | 3, 2, 0x80 | 6, 3, 0x80 | 12, 4, 0x80 | 13,
			5, 0x80 | 14, 6, 0x80 | 15, 7},
		kind: RuleSP, prepare: putRA(sp0 + 56), ip: caller, cfa: sp0 + 64,
		saved: map[int]uint64{context.RBX: sp0 + 48, context.RBP: sp0 + 40, context.R12: sp0 + 32,
			context.R13: sp0 + 24, context.R14: sp0 + 16, context.R15: sp0 + 8}},
	{name: "CFA=RBP+16", program: []byte{0x0c, 6, 16, 0x80 | 6, 2}, kind: RuleBP,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RBP] = sp0 + 80; s.Set(sp0+88, caller) },
		ip:      caller, cfa: sp0 + 96, saved: map[int]uint64{context.RBP: sp0 + 80}},
	{name: "CFA from a register that is unknown", program: []byte{0x0c, 6, 16}, kind: RuleBP,
		prepare: func(s *stack, r *Registers) { r.Known &^= 1 << context.RBP }, stop: unwind.Unreadable},
	{name: "CFA from R10", program: []byte{0x0c, 10, 0}, kind: RuleSide,
		prepare: func(s *stack, r *Registers) { r.GPR[context.R10] = sp0 + 32; s.Set(sp0+24, caller) },
		ip:      caller, cfa: sp0 + 32},
	{name: "CFA offset that is no multiple of a word", program: []byte{0x0e, 12}, kind: RuleSide,
		prepare: putRA(sp0 + 4), ip: caller, cfa: sp0 + 12},
	{name: "a slot far away", program: []byte{0x0e, 0x80, 0x02, 0x80 | 3, 20}, kind: RuleSide,
		prepare: putRA(sp0 + 248), ip: caller, cfa: sp0 + 256, saved: map[int]uint64{context.RBX: sp0 + 96}},
	{name: "a slot at the CFA itself", program: []byte{0x80 | 3, 0}, kind: RuleSide,
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8, saved: map[int]uint64{context.RBX: sp0 + 8}},
	{name: "signal frame with plain rules", signal: true, kind: RuleSide,
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8},
	{name: "undefined register", program: []byte{0x07, 3}, kind: RuleSide, prepare: putRA(sp0), ip: caller,
		cfa: sp0 + 8, lost: []int{context.RBX}},
	{name: "same value", program: []byte{0x08, 3}, kind: RuleSP,
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8},
	{name: "register in register", program: []byte{0x09, 3, 12}, kind: RuleSide,
		prepare: func(s *stack, r *Registers) { s.Set(sp0, caller); r.GPR[context.R12] = s.Word(sp0 + 64) },
		ip:      caller, cfa: sp0 + 8, saved: map[int]uint64{context.RBX: sp0 + 64, context.R12: sp0 + 64}},
	{name: "return address in a register", program: []byte{0x09, 16, 0}, kind: RuleSide,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RAX] = caller }, ip: caller, cfa: sp0 + 8},
	{name: "volatile register saved", program: []byte{0x0e, 24, 0x80 | 5, 2}, kind: RuleSide,
		prepare: putRA(sp0 + 16), ip: caller, cfa: sp0 + 24, saved: map[int]uint64{context.RDI: sp0 + 8}},
	{name: "val_offset of RSP", program: []byte{0x14, 7, 0}, kind: RuleSP,
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8},
	{name: "val_offset", program: []byte{0x15, 7, 0x7e}, kind: RuleSide, // factored -2: CFA+16
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8, sp: sp0 + 24},
	{name: "CFA expression",
		program: expr(0x0f, -1, cfi.DW_OP_breg0+6, 0x78, cfi.DW_OP_deref), kind: RuleSide,
		prepare: func(s *stack, r *Registers) {
			r.GPR[context.RBP] = sp0 + 80
			s.Set(sp0+72, sp0+128)
			s.Set(sp0+120, caller)
		}, ip: caller, cfa: sp0 + 128},
	{name: "expression: the address of the saved value",
		program: expr(0x10, 3, cfi.DW_OP_plus_uconst, 40), kind: RuleSide,
		prepare: putRA(sp0), ip: caller, cfa: sp0 + 8, saved: map[int]uint64{context.RBX: sp0 + 48}},
	{name: "val_expression: the value itself",
		program: expr(0x16, 16, cfi.DW_OP_drop, cfi.DW_OP_breg0+0, 0), kind: RuleSide,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RAX] = caller }, ip: caller, cfa: sp0 + 8},
	{name: "CFA expression that reads nowhere", program: expr(0x0f, -1, cfi.DW_OP_lit0+8, cfi.DW_OP_deref),
		kind: RuleSide, stop: unwind.Unreadable},
	{name: "undefined return address", program: []byte{0x07, 16}, kind: RuleEnd, stop: unwind.EndOfStack},
	{name: "return address 0", kind: RuleSP,
		prepare: func(s *stack, r *Registers) { s.Set(sp0, 0) }, stop: unwind.NullReturn},
	{name: "a broken program", program: []byte{0x3f}, kind: RuleBad, stop: unwind.BadInfo},
	{name: "CFA below SP", program: cat([]byte{0x0c, 6, 0}), kind: RuleBP,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RBP] = sp0 - 64 }, stop: unwind.NoProgress},
	{name: "CFA that wraps", program: []byte{0x0c, 6, 16}, kind: RuleBP,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RBP] = ^uint64(7) }, stop: unwind.NoProgress},
	{name: "CFA above the window", program: []byte{0x0c, 6, 16}, kind: RuleBP,
		prepare: func(s *stack, r *Registers) { r.GPR[context.RBP] = stackLow + stackSize },
		stop:    unwind.Unreadable},
}

// Each rule has its effect, and nothing else: registers it does not name are
// the same if callee-saved and unknown if not; a step that fails leaves all as
// it was.
func TestStepEffects(t *testing.T) {
	for _, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			u := unwinder(makeTable(t, 1, fn{Program: e.program, Signal: e.signal}, fn{}))
			must.Equal(t, u.lookup(unwind.Instruction(at(0))).Kind(), e.kind, "rule")
			s, r := newStack(), start(at(0), sp0)
			if e.prepare != nil {
				e.prepare(s, &r)
			}
			checkEffect(t, &e, u, s, r, s.Window())
			checkEffect(t, &e, u, s, r, from(s, sp0))
			checkEffect(t, &e, u, s, r, beside(s))
			u.DisableCache(true)
			checkEffect(t, &e, u, s, r, s.Window())
		})
	}
}

func checkEffect(t *testing.T, e *effect, u *Unwinder, s *stack, before Registers, mem *memory.Window) {
	t.Helper()
	var f unwind.Frame
	got := before
	exact, stop := stepOf(u, &got, true, mem, nil, &f)
	must.Equal(t, stop, e.stop, "stop")
	expect.True(t, f.IP == before.RIP && f.SP == sp0 && f.Exact && f.CFA == e.cfa,
		"frame %+v, want CFA %#x", f, e.cfa)
	if stop != unwind.StopNone {
		expect.Equal(t, got, before, "a failed step changed the registers")
		return
	}
	want := expected(e, s, &before)
	expect.True(t, got.RIP == e.ip && exact == e.signal,
		"caller at %#x exact %v, want %#x %v", got.RIP, exact, e.ip, e.signal)
	expect.Equal(t, got.Known, want.Known, "known")
	for i := range got.GPR {
		if known(&want, i) && got.GPR[i] != want.GPR[i] {
			t.Errorf("register %d is %#x, want %#x", i, got.GPR[i], want.GPR[i])
		}
	}
	expect.Equal(t, u.trust, unwind.TrustCFI, "trust")
}

// A saved register whose word was not copied becomes unknown; a return address
// that was not copied ends the walk.
func TestMissingWords(t *testing.T) {
	u := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 64, 0x80 | 3, 7, 0x80 | 6, 2}}, fn{}))
	s := newStack()
	s.Set(sp0+56, caller)
	for _, c := range []struct {
		name string
		from uint64
		lost uint32
		stop unwind.Stop
	}{
		{"all there", sp0 + 8, 0, unwind.StopNone},
		{"RBX below the window", sp0 + 16, 1 << context.RBX, unwind.StopNone},
		{"half of RBP", sp0 + 52, 1<<context.RBX | 1<<context.RBP, unwind.StopNone},
		{"half of the return address", sp0 + 60, 0, unwind.Unreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(at(0), sp0)
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, from(s, c.from), nil, &f)
			if stop != c.stop || stop == unwind.StopNone && r.Known != nonvolatile&^c.lost {
				t.Errorf("stop %v, known %#x", stop, r.Known)
			}
		})
	}
}

func expected(e *effect, s *stack, before *Registers) Registers {
	want := *before
	want.Known &= nonvolatile
	want.GPR[context.RSP] = e.cfa
	if e.sp != 0 {
		want.GPR[context.RSP] = e.sp
	}
	for reg, addr := range e.saved {
		want.GPR[reg] = s.Word(addr)
		want.Known |= 1 << reg
	}
	for _, reg := range e.lost {
		want.Known &^= 1 << reg
	}
	return want
}

// Below a signal frame every register is known, the instruction is exact, and
// the stack may be another, lower one.
func TestSignalFrame(t *testing.T) {
	var program []byte
	for d := range 17 { // register d at RSP+8*d
		off := sleb(int64(8 * d))
		ops := append([]byte{cfi.DW_OP_drop, cfi.DW_OP_breg0 + 7}, off...)
		program = append(program, expr(0x10, d, ops...)...)
	}
	u := unwinder(makeTable(t, 1, fn{Program: program, Signal: true}, fn{}))
	s, r := newStack(), start(at(0), sp0)
	low := uint64(stackLow + 0x40)
	s.Set(sp0+8*16, caller)
	s.Set(sp0+8*7, low)
	var f unwind.Frame
	exact, stop := stepOf(u, &r, false, s.Window(),
		&unwind.Bounds{Low: stackLow, High: stackLow + stackSize}, &f)
	must.True(t, stop == unwind.StopNone && exact && f.Kind == unwind.KindSignal,
		"stop %v exact %v kind %v", stop, exact, f.Kind)
	expect.True(t, r.RIP == caller && r.SP() == low && r.Known == 1<<16-1,
		"caller %#x sp %#x known %#x", r.RIP, r.SP(), r.Known)
	for d, n := range fromDWARF {
		want := s.Word(sp0 + 8*uint64(d))
		expect.True(t, r.GPR[n] == want, "DWARF register %d is %#x, want %#x", d, r.GPR[n], want)
	}
}

func sleb(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// GNU ld's linkage table expression becomes a plain offset at each address.
func TestPLTExpression(t *testing.T) {
	u := unwinder(makeTable(t, 1, fn{Program: expr(0x0f, -1, pltCFA...)}, fn{}))
	for off := range uint64(16) {
		words := uint64(1)
		if off >= 11 {
			words = 2
		}
		ip := textBias + textLo + off
		if r := u.lookup(unwind.Instruction(ip)); r.Kind() != RuleSP || r.offset() != 8*words {
			t.Errorf("at +%d: %v+%d, want sp+%d", off, r.Kind(), r.offset(), 8*words)
		}
	}
}

// A return address is looked up one byte lower: its function may end with the
// call.
func TestLookUpByKindOfFrame(t *testing.T) {
	u := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 16}}, fn{Program: []byte{0x0e, 32}}))
	for _, exact := range []bool{true, false} {
		s, r := newStack(), start(textBias+textLo+fnSize, sp0)
		s.Set(sp0+8, at(0))
		s.Set(sp0+24, at(1))
		want := uint64(sp0 + 16)
		if exact {
			want = sp0 + 32
		}
		var f unwind.Frame
		if _, stop := stepOf(u, &r, exact, s.Window(), nil, &f); stop != unwind.StopNone || f.CFA != want {
			t.Errorf("exact %v: stop %v CFA %#x, want %#x", exact, stop, f.CFA, want)
		}
	}
}

// The rule cache follows the table's generation.
func TestSetTable(t *testing.T) {
	u := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 16}}))
	must.Equal(t, u.lookup(unwind.Instruction(at(0))).offset(), 16, "offset")
	u.SetTable(makeTable(t, 2, fn{Program: []byte{0x0e, 32}}))
	off := u.lookup(unwind.Instruction(at(0))).offset()
	expect.True(t, off == 32, "offset %d after the table changed", off)
	u.SetTable(nil)
	off = u.lookup(unwind.Instruction(at(0))).offset()
	expect.True(t, off == 32, "offset %d after a nil table", off)
}

// With more side rules than there is room for, the cache is emptied, and results stay right.
func TestSideRulesOverflow(t *testing.T) {
	fns := make([]fn, 3*maxSide)
	for i := range fns {
		fns[i].Program = append([]byte{0x0e}, binary.AppendUvarint(nil, uint64(8*i+12))...)
	}
	u := unwinder(makeTable(t, 1, fns...))
	for range 2 {
		for i := range fns {
			r := u.lookup(unwind.Instruction(at(i)))
			must.True(t, r.Kind() == RuleSide && u.sides[r.index()].cfa.Off == int64(8*i+12),
				"function %d: %v %d", i, r.Kind(), u.sides[r.index()].cfa.Off)
		}
	}
}

// TestUnknownFramePointer: an unknown frame pointer is not used, although its old value looks like one.
func TestUnknownFramePointer(t *testing.T) {
	program := []byte{cfi.DW_CFA_def_cfa, dwarfRBP, 16, cfi.DW_CFA_offset | dwarfRBP, 2}
	for _, known := range []bool{true, false} {
		u, s, r := unwinder(makeTable(t, 1, fn{Program: program})), newStack(), start(at(0), sp0)
		r.GPR[context.RBP] = sp0 + 0x100
		s.Set(sp0+0x108, at(0))
		want := unwind.StopNone
		if !known {
			r.Known &^= 1 << context.RBP
			want = unwind.Unreadable
		}
		var f unwind.Frame
		_, stop := stepOf(u, &r, false, s.Window(), nil, &f)
		expect.True(t, stop == want, "known %v: %v", known, stop)
	}
}

// TestCheckSP: a caller's stack pointer is not below the frame's, and not above the bounds if the frame is
// within them.
func TestCheckSP(t *testing.T) {
	b := unwind.Bounds{Low: 0x2000, High: 0x3000}
	for _, c := range []struct {
		name       string
		sp, caller uint64
		b          unwind.Bounds
		want       unwind.Stop
	}{
		{"up", 0x2100, 0x2200, b, unwind.StopNone},
		{"nowhere", 0x2100, 0x2100, b, unwind.StopNone},
		{"down", 0x2100, 0x20f8, b, unwind.NoProgress},
		{"to the end", 0x2100, 0x3000, b, unwind.StopNone},
		{"past the end", 0x2100, 0x3008, b, unwind.OutOfStack},
		{"from the beginning past the end", 0x2000, 0x3008, b, unwind.OutOfStack},
		{"from the end past it", 0x3000, 0x3008, b, unwind.OutOfStack},
		{"from a stack below", 0x1ff8, 0x3008, b, unwind.StopNone},
		{"from a stack above", 0x3008, 0x3010, b, unwind.StopNone},
		{"without bounds", 0x2100, 0x9000, unwind.Bounds{}, unwind.StopNone},
	} {
		expect.Equal(t, checkSP(c.sp, c.caller, &c.b), c.want, c.name)
	}
}
