package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// cfiEffects are call frame programs and what a step by them must do.
var cfiEffects = []struct {
	name    string
	program []byte
	prepare func(s *stack, r *Registers)
	ret     bool // the frame is a return address
	signal  bool
	kind    Kind
	stop    unwind.Stop
	pc, sp  uint64
	saved   map[int]uint64 // slot: address its value is read from
}{
	{name: "leaf", kind: RuleSlots, pc: codeCall, sp: sp0},
	{name: "leaf behind a call", ret: true, kind: RuleNoInfo, stop: unwind.NoInfo},
	{name: "frame record", program: []byte{0x0e, 32, 0x9d, 4, 0x9e, 3}, kind: RuleSlots,
		pc: codeCall + 8, sp: sp0 + 32,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+8, codeCall+8) },
		saved:   map[int]uint64{x(29): sp0}},
	{name: "from x29", program: []byte{0x0c, 29, 48, 0x9d, 6, 0x9e, 5, 0x93, 4, 0x05, 72, 3}, ret: true,
		kind: RuleSlots, pc: codeCall + 8, sp: sp0 + 0x70,
		prepare: func(s *stack, r *Registers) { r.X[29] = sp0 + 0x40; s.Set(sp0+0x48, codeCall+8) },
		saved:   map[int]uint64{x(29): sp0 + 0x40, x(19): sp0 + 0x50, d(8): sp0 + 0x58}},
	{name: "x29 unknown", program: []byte{0x0c, 29, 48, 0x9e, 5}, kind: RuleSlots, stop: unwind.Unreadable,
		prepare: func(s *stack, r *Registers) { r.Known &^= 1 << 29 }},
	{name: "signed", program: []byte{0x2d, 0x0e, 16, 0x9e, 1}, kind: RuleSlots,
		pc: codeCall + 8, sp: sp0 + 16,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+8, 0x0035_0000_0000_0000|codeCall+8) }},
	{name: "signed live lr", program: []byte{0x2d}, kind: RuleSlots, pc: codeCall, sp: sp0,
		prepare: func(s *stack, r *Registers) { r.X[30] |= 0x57 << 48 }},
	{name: "undefined return address", program: []byte{0x07, 30}, kind: RuleEnd, stop: unwind.EndOfStack},
	{name: "zero return address", program: []byte{0x0e, 16, 0x9e, 1},
		kind: RuleSlots, stop: unwind.NullReturn,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+8, 0) }},
	{name: "CFA expression", program: []byte{0x0f, 2, 0x8f, 0x20, 0x9e, 1}, kind: RuleCFI,
		pc: codeCall + 8, sp: sp0 + 32,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+24, codeCall+8) }},
	{name: "CFA expression, behind a call", program: []byte{0x0f, 2, 0x8f, 0x20}, ret: true, kind: RuleCFI,
		stop: unwind.BadInfo},
	{name: "register expression", program: []byte{0x0e, 16, 0x9e, 1, 0x10, 19, 2, 0x23, 8}, kind: RuleCFI,
		pc: codeCall + 8, sp: sp0 + 16,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+8, codeCall+8) },
		saved:   map[int]uint64{x(19): sp0 + 24}},
	{name: "return address in a register", program: []byte{0x09, 30, 9},
		kind: RuleCFI, pc: codeCall + 8, sp: sp0,
		prepare: func(s *stack, r *Registers) { r.X[9] = codeCall + 8 }},
	{name: "signal frame", program: []byte{0x0e, 16, 0x9e, 1}, signal: true, kind: RuleCFI,
		pc: codeCall + 8, sp: sp0 + 16,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+8, codeCall+8) }},
	{name: "the resolver's CFA", program: []byte{0x0e, 32, 0x11, 30, 0x7f}, kind: RuleSlots,
		pc: codeCall + 8, sp: sp0 + 48,
		prepare: func(s *stack, r *Registers) { s.Set(sp0+40, codeCall+8) }},
	{name: "no progress", kind: RuleSlots, stop: unwind.NoProgress,
		prepare: func(s *stack, r *Registers) { r.X[30] = r.PC }},
	{name: "CFA below SP", program: []byte{0x13, 2, 0x9e, 1}, kind: RuleSlots, stop: unwind.NoProgress},
	{name: "unreadable", program: []byte{0x0e, 0x80, 0x80, 4, 0x9e, 1},
		kind: RuleSlots, stop: unwind.Unreadable},
	{name: "malformed", program: []byte{0x3f}, kind: RuleBad, stop: unwind.BadInfo},
	{name: "set_ra_state", program: []byte{0x2b, 2, 0x7c}, kind: RuleSlots, pc: codeCall, sp: sp0,
		prepare: func(s *stack, r *Registers) { r.X[30] |= 0x57 << 48 }},
}

func TestStepCFI(t *testing.T) {
	for i := range cfiEffects {
		e := &cfiEffects[i]
		t.Run(e.name, func(t *testing.T) {
			u := unwinder(makeTable(t, nil, fn{Program: e.program, Signal: e.signal}))
			s, r := newStack(), start(at(0), sp0)
			if e.prepare != nil {
				e.prepare(s, &r)
			}
			want := r
			for slot, addr := range e.saved {
				setSlot(&want, slot, s.Word(addr))
			}
			want.PC, want.Sp = e.pc, e.sp
			before := r
			var f unwind.Frame
			exact, stop := stepOf(u, &r, !e.ret, s.Window(), nil, &f)
			if k := u.lookup(unwind.Address{IP: at(0), Exact: !e.ret}).Kind(); k != e.kind || stop != e.stop {
				t.Fatalf("rule %v, stop %v; want %v, %v", k, stop, e.kind, e.stop)
			}
			expect.True(t, f.IP == before.PC && f.SP == before.Sp && f.FP == before.X[29] && f.Exact != e.ret,
				"frame %+v", f)
			if stop != unwind.StopNone {
				expect.True(t, r == before && f.CFA == 0, "a failed step changed something")
				return
			}
			if d := samePreserved(&r, &want); d != "" || exact != e.signal || f.CFA != e.sp {
				t.Errorf("%s: pc %#x sp %#x, CFA %#x, exact %v", d, r.PC, r.Sp, f.CFA, exact)
			}
			if r.Known&(1<<9) != 0 && e.kind == RuleSlots {
				t.Error("a volatile register is still known")
			}
		})
	}
}

// TestUndefinedVector: a vector register whose rule says that it is lost is unknown.
func TestUndefinedVector(t *testing.T) {
	// CFA by an expression: the row is no rule of slots
	u := unwinder(makeTable(t, nil, fn{Program: []byte{0x0f, 2, 0x8f, 0x20, 0x9e, 1, 0x07, 72}}))
	s, r := newStack(), start(at(0), sp0)
	s.Set(sp0+24, codeCall)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && !known(&r, 32) && known(&r, 33), "%v, known %#x", stop, r.Known)
}

// Code without unwind data, entered at each instruction.
func TestStepByCode(t *testing.T) {
	const (
		adrp, ldr, add = 0x90000110, 0xf9400211, 0x91000210
		stpRecord      = 0xa9bf7bfd // stp x29, x30, [sp, #-16]!
		movFP          = 0x910003fd
		ldpRecord      = 0xa8c17bfd // ldp x29, x30, [sp], #16
		bl, ret        = 0x94000010, 0xd65f03c0
		paciasp        = 0xd503233f
	)
	plt0 := []uint32{insPLT0Push, adrp, ldr, add, insBRX17, insNop}
	initCode := []uint32{insNop, stpRecord, movFP, bl, ldpRecord, ret}
	for _, c := range []struct {
		name   string
		code   []uint32
		ins    int
		ret    bool
		pushed uint64 // SP is so much below the caller's; with a frame record there if inRecord
		record bool
		stop   unwind.Stop
	}{
		{name: "linkage table entry", code: []uint32{adrp, ldr, add, insBRX17}},
		{name: "its last instruction", code: []uint32{adrp, ldr, add, insBRX17}, ins: 3},
		{name: "linkage table head", code: plt0},
		{name: "behind its push", code: plt0, ins: 1, pushed: 16},
		{name: "its jump", code: plt0, ins: 4, pushed: 16},
		{name: "_init", code: initCode},
		{name: "_init before its push", code: initCode, ins: 1},
		{name: "_init behind its push", code: initCode, ins: 2, pushed: 16, record: true},
		{name: "_init at its call", code: initCode, ins: 3, pushed: 16, record: true},
		{name: "_init behind its call", code: initCode, ins: 4, ret: true, pushed: 16, record: true},
		{name: "_init at its return", code: initCode, ins: 5},
		{name: "call_weak_fn", code: []uint32{0x90000100, 0xf947f000, 0xb4000040, 0x17fffff0, ret},
			stop: unwind.NoInfo},
		{name: "behind a call that never returns", code: []uint32{bl, stpRecord, movFP, ldpRecord, ret},
			ins: 1, ret: true, stop: unwind.NoInfo},
		{name: "signed", code: []uint32{paciasp, stpRecord, ldpRecord, 0xd50323bf, ret}},
		{name: "live lr behind a call", code: []uint32{bl, ret}, ins: 1, ret: true, stop: unwind.NoInfo},
		{name: "a write to x19", code: []uint32{0xaa0003f3, ret}, stop: unwind.NoInfo},
		{name: "a loop", code: []uint32{0x14000000}, stop: unwind.NoInfo},
		{name: "data", code: []uint32{0, 0}, stop: unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := unwinder(makeTable(t, c.code, fn{}))
			s, r := newStack(), start(codeLo+4*uint64(c.ins), sp0)
			fp := r.X[29]
			if c.record {
				s.Set(sp0, 0x4444)
				s.Set(sp0+8, codeCall)
				fp, r.X[30], r.X[29] = 0x4444, 0x5555, sp0
			}
			var f unwind.Frame
			_, stop := stepOf(u, &r, !c.ret, s.Window(), nil, &f)
			must.Equal(t, stop, c.stop, "stop")
			if stop != unwind.StopNone {
				return
			}
			expect.True(t, r.PC == codeCall && r.Sp == sp0+c.pushed && r.X[29] == fp &&
				u.trust == unwind.TrustLeaf, "caller %#x/%#x fp %#x, trust %v", r.PC, r.Sp, r.X[29], u.trust)
		})
	}
}

// The kernel's signal frame, found by the trampoline's two instructions in
// memory outside any module.
func TestSigreturn(t *testing.T) {
	u := unwinder(makeTable(t, nil, fn{}))
	s := newStack()
	s.Set(sp0-16, insSVC<<32|insMovX8Sigreturn)
	for i := range uint64(31) {
		s.Set(sp0+sigX0+8*i, 0x7700+i)
	}
	s.Set(sp0+sigSP, sp0+0x2000)
	s.Set(sp0+sigPC, at(0))
	s.Set(sp0+sigRecords, 0x53569000|32<<32) // some record before
	s.Set(sp0+sigRecords+32, 0x210<<32|fpsimdMagic)
	for i := range uint64(32) {
		s.Set(sp0+sigRecords+32+16+16*i, 0x8800+i)
	}
	for _, c := range []struct {
		name  string
		pc    uint64
		exact bool
	}{{"a handler's return address", sp0 - 16, false}, {"its first instruction", sp0 - 16, true},
		{"its second", sp0 - 12, true}} {
		r := start(c.pc, sp0)
		var f unwind.Frame
		exact, stop := stepOf(u, &r, c.exact, s.Window(), nil, &f)
		must.True(t, stop == unwind.StopNone && exact && f.Kind == unwind.KindSignal && r.PC == at(0) &&
			r.Sp == sp0+0x2000, "%s: %v exact %v %v at %#x/%#x", c.name, stop, exact, f.Kind, r.PC, r.Sp)
		expect.True(t, r.X[0] == 0x7700 && r.X[30] == 0x771e && r.D[0] == 0x8808 && r.D[7] == 0x880f &&
			r.Known == 1<<31-1|0xff<<32,
			"%s: x0 %#x x30 %#x d8 %#x known %#x", c.name, r.X[0], r.X[30], r.D[0], r.Known)
	}
	s.Set(sp0+sigRecords, 0x53569000) // a record of size 0 ends the search
	r := start(sp0-16, sp0)
	var f unwind.Frame
	_, stop := stepOf(u, &r, false, s.Window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && r.Known == 1<<31-1, "%v, known %#x", stop, r.Known)
}

// A trampoline at the beginning of a page is found, although its look-up address, in the code
// before it, is managed code. Code of a method is not mistaken for one.
func TestSigreturnBehindManagedCode(t *testing.T) {
	page := uint64(sp0 + 0x1000)
	u := unwinder(module.NewTable(1, nil, []memory.Range{{Start: page - 64, End: page}}))
	s := newStack()
	for _, addr := range []uint64{page, page - 32} {
		s.Set(addr, insSVC<<32|insMovX8Sigreturn)
	}
	s.Set(sp0+sigSP, sp0+0x2000)
	s.Set(sp0+sigPC, at(0))
	for _, c := range []struct {
		name string
		pc   uint64
		stop unwind.Stop
	}{{"behind it", page, unwind.StopNone}, {"in it", page - 32, unwind.NoInfo}} {
		r := start(c.pc, sp0)
		var f unwind.Frame
		exact, stop := stepOf(u, &r, false, s.Window(), nil, &f)
		expect.True(t, stop == c.stop && exact == (stop == unwind.StopNone),
			"%s: %v, exact %v", c.name, stop, exact)
	}
}

func TestStripPAC(t *testing.T) {
	for _, c := range []struct{ in, strip, user uint64 }{
		{0x7ff600001230, 0x7ff600001230, 0x7ff600001230},
		{0x0057_7ff6_0000_1230, 0x7ff600001230, 0x7ff600001230},
		{0xff57_7ff6_0000_1230, 0x7ff600001230, 0x7ff600001230},
		{0x00d7_8000_0000_1230, 0xffff_8000_0000_1230, 0x8000_0000_1230},
	} {
		expect.Equal(t, stripPAC(c.in), c.strip, "stripPAC(%#x)", c.in)
		expect.Equal(t, stripUser(c.in), c.user, "stripUser(%#x)", c.in)
	}
}
