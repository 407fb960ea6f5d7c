package image

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// unhex takes groups of hex digits.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

func TestCIEBytes(t *testing.T) {
	for _, c := range []struct {
		a           Arch
		interrupted bool
		want        string
	}{
		{AMD64, false, "14000000 00000000 01 7a5200 01 78 10 01 1b 0c0708 9001 0000"},
		{AMD64, true, "14000000 00000000 01 7a525300 01 78 10 01 1b 0c0708 000000"},
		{ARM64, false, "14000000 00000000 01 7a5200 04 78 1e 01 1b 0c1f00 00000000"},
		{ARM64, true, "14000000 00000000 01 7a525300 04 78 20 01 1b 0c1f00 000000"},
	} {
		expect.Slices(t, cie(c.a, c.interrupted), unhex(t, c.want), "%v, interrupted %v", c.a, c.interrupted)
	}
}

// byEffects is a function of ops of the same size.
func byEffects(size uint32, effects ...[]Effect) Func {
	fn := Func{Name: "f"}
	for i, e := range effects {
		fn.Ops = append(fn.Ops, Op{Off: size * uint32(i), Code: make([]byte, size), Effects: e})
	}
	return fn
}

// paused has an op of n bytes between two changes of the CFA.
func paused(n int) Func {
	grow := []Effect{{Kind: Add, Reg: rsp, Base: rsp, Imm: -16}}
	fn := byEffects(1, nil, grow, grow, nil)
	fn.Ops[2].Code = make([]byte, n)
	fn.Ops[3].Off = 2 + uint32(n)
	return fn
}

func TestProgramBytes(t *testing.T) {
	const sp = 31
	amd64 := func(s ShapeAMD64) Func {
		return must.Get(s.Func(ELF, "f"))(t)
	}
	signal := byEffects(4, nil, []Effect{{Kind: Add, Reg: rsp, Base: rsp, Imm: -8}}, nil)
	signal.Entry = MachineFrame
	root := byEffects(4, []Effect{{Kind: Store, Reg: 30, Base: sp, Imm: -16},
		{Kind: Add, Reg: sp, Base: sp, Imm: -16}}, nil)
	root.Root = true
	for _, c := range []struct {
		name string
		a    Arch
		fn   Func
		want string
	}{
		{"leaf", AMD64, amd64(ShapeAMD64{Leaf: true, Body: 3}), ""},
		{"root", AMD64, amd64(ShapeAMD64{Leaf: true, Root: true}), "0710"},
		// push rbx; sub rsp,16; nop of two bytes; add; pop; ret
		{"push", AMD64, amd64(ShapeAMD64{Saves: []Reg{rbx}, Alloc: 16, Body: 1}),
			"41 0e10 8302 44 0e20 46 0e10 41 0e08 c3"},
		// push rbp; mov rbp,rsp; mov rax,-n; add rsp,rax; leave; ret
		{"alloca", AMD64, amd64(ShapeAMD64{FramePointer: true, Dynamic: true}),
			"41 0e10 8602 4d 0d06 41 0c0708 c6"},
		{"advance_loc", AMD64, paused(63), "42 0e18 7f 0e28"},
		{"advance_loc1", AMD64, paused(64), "42 0e18 0240 0e28"},
		{"advance_loc1, longest", AMD64, paused(255), "42 0e18 02ff 0e28"},
		{"advance_loc2", AMD64, paused(256), "42 0e18 030001 0e28"},
		{"advance_loc4", AMD64, paused(1 << 16), "42 0e18 0400000100 0e28"},
		{"above the CFA", AMD64,
			byEffects(1, []Effect{{Kind: Store, Reg: rbx, Base: rsp, Imm: 16}}, nil), "41 11037f"},
		{"machine frame", AMD64, signal, "0f03 771806 1010 027700 48 0f03 772006 1010 027708"},
		// paciasp; stp x29,x30,[sp,#-32]!; str d8,[sp,#16]; bl; ldr d8; ldp; autiasp; ret
		{"signed", ARM64, byEffects(4,
			[]Effect{{Kind: Sign}},
			[]Effect{{Kind: Store, Reg: 29, Base: sp, Imm: -32}, {Kind: Store, Reg: 30, Base: sp, Imm: -24},
				{Kind: Add, Reg: sp, Base: sp, Imm: -32}},
			[]Effect{{Kind: StoreV, Reg: 8, Base: sp, Imm: 16}},
			[]Effect{{Kind: Call}},
			[]Effect{{Kind: LoadV, Reg: 8, Base: sp, Imm: 16}},
			[]Effect{{Kind: Load, Reg: 29, Base: sp}, {Kind: Load, Reg: 30, Base: sp, Imm: 8},
				{Kind: Add, Reg: sp, Base: sp, Imm: 32}},
			[]Effect{{Kind: Auth}},
			[]Effect{{Kind: Return}}),
			"41 2d 41 0e20 9d04 9e03 41 054802 42 0648 41 0e00 dd de 41 2d"},
		{"root", ARM64, root, "071e 41 0e10"},
	} {
		got, err := program(c.a, &c.fn)
		expect.True(t, err == nil && slices.Equal(got, unhex(t, c.want)),
			"%v, %s: %v, % x", c.a, c.name, err, got)
	}
}

func TestProgramRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		a  Arch
		fn Func
	}{
		"a save at no word": {AMD64,
			byEffects(1, []Effect{{Kind: Store, Reg: rbx, Base: rsp, Imm: -12}}, nil)},
		"half an instruction": {ARM64, byEffects(2, []Effect{{Kind: Add, Reg: 31, Base: 31, Imm: -16}}, nil)},
		"stack above the CFA": {AMD64,
			byEffects(1, []Effect{{Kind: Add, Reg: rsp, Base: rsp, Imm: 16}}, nil)},
		"the same on ARM64": {ARM64, byEffects(4, []Effect{{Kind: Add, Reg: 31, Base: 31, Imm: 16}}, nil)},
	} {
		_, err := Build(c.a, ELF, "x", 0, []Func{c.fn})
		expect.True(t, err != nil, "%s: built", name)
	}
}

// TestCFIRows: the reader's rows are the functions', rule by rule; what walks
// cannot tell, such as a rule for a register that was not changed yet, included.
func TestCFIRows(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		r := rand.New(rand.NewPCG(8, uint64(a)))
		var funcs []Func
		for range 1000 {
			if a == AMD64 {
				funcs = append(funcs, RandomAMD64(r, ELF, "f"))
			} else {
				funcs = append(funcs, RandomARM64(r, ELF, "f"))
			}
		}
		im := buildELF(t, a, append(funcs, SignalReturn(a))...)
		f := must.Get(elf.New(im.File, "x"))(t)
		table := module.ELFFromFile(1, f, "x", im.Base, im.End(), im.Base).CFI
		var m cfi.Machine
		var row cfi.Row
		for i := range im.Funcs {
			fn := &im.Funcs[i]
			for k, want := range fn.Rows(a) {
				if fn.NoInfo {
					continue
				}
				pc := uint64(fn.RVA + fn.Ops[k].Off)
				must.Equal(t, m.Row(table, pc, &row), cfi.None, "%v: %s, op %d", a, fn.Name, k)
				if s := wrongRow(a, &row, &want); s != "" {
					t.Fatalf("%v: %s, op %d: %s: %s", a, fn.Name, k, s, rowText(want))
				}
			}
		}
	}
}

// numbersAMD64 are DWARF's numbers by name, as the psABI has them.
var numbersAMD64 = map[Reg]uint16{rax: 0, rdx: 1, rcx: 2, rbx: 3, rsi: 4, rdi: 5, rbp: 6, rsp: 7, r8: 8,
	r9: 9, 10: 10, 11: 11, r12: 12, 13: 13, 14: 14, r15: 15}

func number(a Arch, r Reg) uint16 {
	if a == AMD64 {
		return numbersAMD64[r]
	}
	return uint16(r)
}

// wrongRow reports what of a read row is not as wanted, "" if nothing.
func wrongRow(a Arch, got *cfi.Row, want *Row) string {
	kind, cfa := cfi.Offset, cfi.RegisterOffset
	if want.Interrupted {
		kind, cfa = cfi.Expression, cfi.Expression
	}
	if got.CFA.Kind != cfa ||
		cfa == cfi.RegisterOffset && (got.CFA.Reg != number(a, want.Base) || got.CFA.Off != want.Off) {
		return "CFA"
	}
	if got.FDE.Signal != want.Interrupted || got.RASign != want.Signed {
		return "flags"
	}
	rules := 0
	has := func(reg uint16, off int64) bool {
		rules++
		r := got.Rule(context.Arch(a)+1, reg)
		if kind == cfi.Expression {
			return r.Kind == kind && slices.Equal(r.Expr, atBase(number(a, want.Base), off))
		}
		return r.Kind == kind && r.Off == off
	}
	for _, s := range want.Saved {
		if !has(number(a, s.Reg), s.Off) {
			return "a general register"
		}
	}
	for _, s := range want.V {
		if a == ARM64 && !has(64+uint16(s.Reg), s.Off) {
			return "a vector register"
		}
	}
	if !want.RAReg && !has(got.FDE.RA, want.RA) {
		return "return address"
	}
	for c := range got.Regs {
		if got.Regs[c].Kind != cfi.Unspecified {
			rules--
		}
	}
	if rules != 0 {
		return "a rule too many"
	}
	return ""
}

// atBase is DW_OP_bregN of an offset in [0,8192), as SLEB128 by hand.
func atBase(reg uint16, off int64) []byte {
	if off < 64 {
		return []byte{0x70 + byte(reg), byte(off)}
	}
	return []byte{0x70 + byte(reg), 0x80 | byte(off&0x7f), byte(off >> 7)}
}
