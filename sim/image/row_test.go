package image

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func rowText(r Row) string {
	s := fmt.Sprintf("r%d%+d", r.Base, r.Off)
	for _, x := range r.Saved {
		s += fmt.Sprintf(" r%d@%d", x.Reg, x.Off)
	}
	for _, x := range r.V {
		s += fmt.Sprintf(" v%d@%d", x.Reg, x.Off)
	}
	if r.RAReg {
		s += " ra=x30"
	} else {
		s += fmt.Sprintf(" ra@%d", r.RA)
	}
	if r.Signed {
		s += " signed"
	}
	if r.Interrupted {
		s += " interrupted"
	}
	return s
}

func checkRowTexts(t *testing.T, f *Func, a Arch, want []string) {
	t.Helper()
	rows := f.Rows(a)
	must.Equal(t, len(rows), len(want), "rows")
	for i := range rows {
		expect.Equal(t, rowText(rows[i]), want[i], "before op %d (% x)", i, f.Ops[i].Code)
	}
}

func TestRowsAMD64(t *testing.T) {
	cases := []struct {
		name  string
		f     Format
		shape ShapeAMD64
		want  []string
	}{
		{"push", ELF, ShapeAMD64{Saves: []Reg{rbx}, Alloc: 16, Body: 1}, []string{
			"r4+8 ra@-8",         // push rbx
			"r4+16 r3@-16 ra@-8", // sub rsp, 16
			"r4+32 r3@-16 ra@-8", // nop
			"r4+32 r3@-16 ra@-8", // add rsp, 16
			"r4+16 r3@-16 ra@-8", // pop rbx
			"r4+8 ra@-8",         // ret
		}},
		{"alloca, leave", ELF, ShapeAMD64{FramePointer: true, Dynamic: true}, []string{
			"r4+8 ra@-8",         // push rbp
			"r4+16 r5@-16 ra@-8", // mov rbp, rsp
			"r4+16 r5@-16 ra@-8", // mov rax, -16
			"r4+16 r5@-16 ra@-8", // add rsp, rax
			"r5+16 r5@-16 ra@-8", // leave
			"r4+8 ra@-8",         // ret
		}},
		{"home and xmm", PE, ShapeAMD64{Saves: []Reg{rsi}, SavesXMM: []Reg{15},
			SaveByMov: true, Home: true}, []string{
			"r4+8 ra@-8",               // mov [rsp+8], rsi
			"r4+8 r6@0 ra@-8",          // sub rsp, 24
			"r4+32 r6@0 ra@-8",         // movaps [rsp], xmm15
			"r4+32 r6@0 v15@-32 ra@-8", // movaps xmm15, [rsp]
			"r4+32 r6@0 ra@-8",         // mov rsi, [rsp+32]
			"r4+32 ra@-8",              // add rsp, 24
			"r4+8 ra@-8",               // ret
		}},
		{"trap", PE, ShapeAMD64{MachineFrame: true, ErrorCode: true, Saves: []Reg{rdi}}, []string{
			"r4+32 ra@8 interrupted",       // push rdi
			"r4+40 r7@0 ra@16 interrupted", // the end
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fn := must.Get(c.shape.Func(c.f, c.name))(t)
			checkRowTexts(t, &fn, AMD64, c.want)
		})
	}
}

// TestRowsARM64: pacibsp; stp x29,x30,[sp,#-32]!; stp x19,d8 to [sp,#16]; mov
// x29,sp; alloca; bl; the reverse.
func TestRowsARM64(t *testing.T) {
	const sp = 31
	effects := [][]Effect{
		{{Kind: Sign}},
		{{Kind: Store, Reg: 29, Base: sp, Imm: -32}, {Kind: Store, Reg: 30, Base: sp, Imm: -24},
			{Kind: Add, Reg: sp, Base: sp, Imm: -32}},
		{{Kind: Store, Reg: 19, Base: sp, Imm: 16}, {Kind: StoreV, Reg: 8, Base: sp, Imm: 24}},
		{{Kind: Add, Reg: 29, Base: sp}},
		{{Kind: AddReg, Reg: sp, Base: 9}},
		{{Kind: Call}},
		{{Kind: Add, Reg: sp, Base: 29}},
		{{Kind: Load, Reg: 19, Base: sp, Imm: 16}, {Kind: LoadV, Reg: 8, Base: sp, Imm: 24}},
		{{Kind: Load, Reg: 29, Base: sp}, {Kind: Load, Reg: 30, Base: sp, Imm: 8},
			{Kind: Add, Reg: sp, Base: sp, Imm: 32}},
		{{Kind: Auth}},
		{{Kind: Return}},
	}
	fn := Func{Name: "f"}
	for i, e := range effects {
		fn.Ops = append(fn.Ops, Op{Off: uint32(4 * i), Code: []byte{0, 0, 0, 0}, Effects: e})
	}
	full := " r29@-32 r19@-16 v8@-8 ra@-24 signed"
	checkRowTexts(t, &fn, ARM64, []string{
		"r31+0 ra=x30",
		"r31+0 ra=x30 signed",
		"r31+32 r29@-32 ra@-24 signed",
		"r31+32" + full,
		"r31+32" + full,
		"r29+32" + full,
		"r29+32" + full,
		"r31+32" + full,
		"r31+32 r29@-32 ra@-24 signed",
		"r31+0 ra=x30 signed",
		"r31+0 ra=x30",
	})
	expect.Equal(t, fn.Rows(ARM64)[5].Held, 1<<29, "held")
}

// TestRowsOfSignals: the slots are the kernel's.
func TestRowsOfSignals(t *testing.T) {
	for a, want := range []string{
		"r4+160 r0@144 r1@152 r2@136 r3@128 r5@120 r6@112 r7@104 r8@40 r9@48 r10@56 r11@64 r12@72 r13@80 r14@88 r15@96 ra@168 interrupted",
		"",
	} {
		fn := SignalReturn(Arch(a))
		rows := fn.Rows(Arch(a))
		if got := rowText(rows[2]); want != "" && got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	fn := SignalReturn(ARM64)
	row := fn.Rows(ARM64)[1]
	expect.True(t, row.Off == 560 && row.RA == 568 && row.Saved[0] == (Slot{0, 312}) &&
		row.V[8] == (Slot{8, 592 + 16 + 128}) && len(row.Saved) == 31, "%+v", row)
}

// TestRowsEndAsTheyBegin: behind the epilog all is as at the entry.
func TestRowsEndAsTheyBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 2000 {
		fn := RandomAMD64(r, Format(i%2), "f")
		rows := fn.Rows(AMD64)
		must.Equal(t, rowText(rows[0]), rowText(rows[len(rows)-1]), "function %d: first and last row", i)
	}
}
