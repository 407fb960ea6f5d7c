package arm64

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// part is a piece of code with a record of its own.
type part struct {
	code    []uint32
	program []byte
}

// partsTable is a module with the code of the parts, one after another from codeLo.
func partsTable(t *testing.T, parts ...part) *module.Table {
	t.Helper()
	cie, frames, code := elfasm.ARM64CIE(), elfasm.Frames{}, []uint32{}
	frames.CIE(&cie)
	for _, p := range parts {
		if p.program != nil {
			frames.FDE(&cie, codeLo-textBias+4*uint64(len(code)), 4*uint64(len(p.code)), p.program...)
		}
		code = append(code, p.code...)
	}
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	m := module.Module{Start: textBias, End: textBias + 0x10000, Bias: textBias,
		CFI: table, ELF: image(t, code)}
	return module.NewTable(1, []module.Module{m}, nil)
}

// TestSynchronous: where a thread was interrupted, rows that are right only at calls are corrected by the
// code. Other rows stay as they are.
func TestSynchronous(t *testing.T) {
	const (
		push, push19, frame = 0xa9be7bfd,
			0xf9000bf3, 0x910003fd // stp x29, x30, [sp, #-32]!; str x19, [sp, #16]; mov x29, sp
		pop19, pop, ret = 0xf9400bf3,
			0xa8c27bfd, 0xd65f03c0 // ldr x19, [sp, #16]; ldp x29, x30, [sp], #32
		other, nop   = 0x91000400, insNop     // add x0, x0, #1
		call, cbz    = 0x94000100, 0xb4000060 // cbz x0, three on
		lower, raise = 0xd10083ff, 0x910083ff // sub, add sp, sp, #32
		into, onto   = 0xa9007bfd, 0xa9407bfd // stp, ldp x29, x30, [sp]
		popD         = 0x6cc623eb             // ldp d11, d8, [sp], #96
		size         = 0xd280040c             // mov x12, #32
	)
	after := func(n byte, rest ...byte) []byte { return append([]byte{0x40 | 4*n}, rest...) }
	framed := []byte{0x0c, 29, 32, 0x9d, 4, 0x9e, 3, 0x93, 2} // CFA=x29+32; x29, x30, x19 at CFA-32, -24, -16
	whole := []uint32{push, push19, frame, other, call, other, pop19, pop, ret}
	// mov x16, x2; br x16; dsb sy; isb
	thunk := slices.Concat(whole, []uint32{0xaa0203f0, 0xd61f0200, 0xd5033f9f, 0xd5033fdf})
	zeroed := slices.Concat([]uint32{lower, into, frame, other, call, onto, other, raise},
		slices.Repeat([]uint32{0xd2800001}, 40), []uint32{ret})
	saved := []byte{0x0e, 32, 0x9d, 4, 0x9e, 3} // CFA=SP+32; x29, x30 at CFA-32, -24
	for _, c := range []struct {
		name  string
		parts []part
		at    uint64 // instruction
		sp    uint64 // the caller's, above the frame's
		slot  uint64 // of the return address, above sp0; 1: in x30
	}{
		{"at the beginning", []part{{whole, after(3, framed...)}}, 0, 0, 1},
		{"behind the push", []part{{whole, after(3, framed...)}}, 1, 32, 8},
		{"before the frame pointer", []part{{whole, after(3, framed...)}}, 2, 32, 8},
		{"in the body", []part{{whole, after(3, framed...)}}, 3, 32, 8},
		{"before the pop", []part{{whole, after(3, framed...)}}, 7, 32, 8},
		{"before the return", []part{{whole, after(3, framed...)}}, 8, 0, 1},
		{"loaded, and not yet popped",
			[]part{{[]uint32{lower, into, frame, other, call, onto, raise, ret},
				after(3, framed...)}}, 6, 32, 8},
		{"loaded, and popped by a constant",
			[]part{{[]uint32{size, 0xcb2c63ff, into, frame, other, call, onto, size, 0x8b2c63ff, ret},
				after(4, framed...)}}, 8, 32, 8}, // sub, add sp, sp, x12
		{"described before it is stored",
			[]part{{[]uint32{lower, into, frame, call, onto, raise, ret}, after(1, saved...)}}, 1, 32, 1},
		{"behind a branch", []part{{[]uint32{cbz, other, ret, push, push19, frame, call, pop19, pop, ret},
			after(6, framed...)}}, 4, 32, 8},
		{"behind a branch that is not taken",
			[]part{{[]uint32{cbz, push, push19, frame, call, pop19, pop, ret},
				after(4, framed...)}}, 2, 32, 8},
		{"behind a call that does not return",
			[]part{{[]uint32{cbz, push, call, other, ret},
				after(2, append(append(saved, 0x44), 0x0e, 0, 0xdd, 0xde)...)}}, 3, 0, 1},
		{"behind a call that does not return, and calls",
			[]part{{[]uint32{cbz, push, call, other, call, ret},
				after(2, append(append(saved, 0x44), 0x0e, 0, 0xdd, 0xde)...)}}, 3, 0, 1},
		{"described before it has begun", []part{{[]uint32{push, call, pop, ret}, saved}}, 0, 0, 1},
		{"described before it has begun, begun", []part{{[]uint32{push, call, pop, ret}, saved}}, 1, 32, 8},
		{"described after it has ended", []part{{[]uint32{push, call, pop, ret}, saved}}, 3, 0, 1},
		{"a part that lies elsewhere", []part{{[]uint32{other, other, call}, saved}}, 1, 32, 8},
		{"such a part before a function", []part{{[]uint32{other, other}, saved},
			{[]uint32{push, call, pop, ret}, after(1, saved...)}}, 1, 32, 8},
		{"on its way to such a part",
			[]part{{[]uint32{push, call, other, 0x14000001}, after(1, saved...)},
				{[]uint32{other, call}, saved}}, 2, 32, 8},
		{"on its way to another function",
			[]part{{[]uint32{push, call, pop, 0x14000001}, after(1, saved...)},
				{[]uint32{other, ret}, []byte{}}}, 3, 0, 1},
		{"on its way to a linkage table",
			[]part{{[]uint32{push, call, pop, 0x14000001}, after(1, saved...)},
				{[]uint32{other, ret}, nil}}, 3, 0, 1},
		{"on its way to where its row comes late",
			[]part{{[]uint32{push, other, lower, call, raise, 0x17fffffc},
				after(3, 0x0e, 64, 0x9d, 4, 0x9e, 3)}}, 4, 64, 40},
		{"described as ended where it has not",
			[]part{{[]uint32{push, call, other, other, pop, ret},
				after(1, append(append(saved, 0x44), 0x0e, 0, 0xdd, 0xde)...)}}, 3, 32, 8},
		{"behind a part of a prolog",
			[]part{{[]uint32{push, 0x94000005, lower, other, call, ret}, after(4, framed...)},
				{[]uint32{push19, ret}, []byte{}}}, 3, 64, 40},
		{"behind a call that returns elsewhere",
			[]part{{[]uint32{push, 0x94000005, other, call, other, ret}, after(1, saved...)},
				{[]uint32{lower, 0xaa0003fe, ret}, []byte{}}}, 2, 32, 8},
		{"in a part of an epilog", []part{{[]uint32{popD, ret}, []byte{}}}, 0, 96, 1},
		{"on its way to a part of an epilog",
			[]part{{[]uint32{0x6dba23eb, 0xa9017bfd, 0x910043fd, call, 0xa9417bfd, 0x14000001},
				after(3, 0x0c, 29, 80, 0x9d, 10, 0x9e, 9)}, {[]uint32{popD, ret}, []byte{}}}, 5, 96, 24},
		{"that aligns its stack",
			[]part{{[]uint32{push, 0xd10183e9, frame, 0x927be93f, other, call},
				after(5, framed...)}}, 4, 32, 8},
		{"loaded, with registers to zero behind it", []part{{zeroed, after(3, framed...)}}, 6, 32, 8},
		{"in a thunk for calls", []part{{thunk, after(3, framed...)}}, 9, 0, 1},
		{"at the jump of such a thunk", []part{{thunk, after(3, framed...)}}, 10, 0, 1},
		{"in what is no such thunk", []part{{thunk[:12], after(3, framed...)}}, 9, 32, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cached := range []bool{true, false} {
				u, s, regs := unwinder(partsTable(t, c.parts...)), newStack(), start(codeLo+4*c.at, sp0)
				u.DisableCache(!cached)
				if regs.X[29], regs.X[30] = sp0, 0x1234; strings.HasPrefix(c.name, "loaded, ") {
					regs.X[29] = 0x5670 // the caller's
				}
				if c.slot == 1 {
					regs.X[30] = codeCall
				} else {
					s.Set(sp0+c.slot, codeCall)
				}
				var f unwind.Frame
				_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
				if stop != unwind.StopNone || regs.PC != codeCall || regs.Sp != sp0+c.sp ||
					u.trust.Doubtful() || !known(&regs, 32+7) { // no code loads d15
					t.Errorf("cached %v: %v, pc %#x, sp %#x by %v, known %#x", cached, stop, regs.PC, regs.Sp,
						u.trust, regs.Known)
				}
			}
		})
	}
}

// TestReturnsElsewhere: x30 is not the return address if the code changes it before it returns, even if the
// row says so.
func TestReturnsElsewhere(t *testing.T) {
	const raise, ret = 0x910083ff, 0xd65f03c0 // add sp, sp, #32; ret
	for _, c := range []struct {
		name string
		w    uint32
		want uint64
	}{
		{"x30 stays", insNop, codeCall + 8},
		{"x30 is moved", 0xaa0903fe, codeCall},  // mov x30, x9
		{"x30 is loaded", 0xf940015e, codeCall}, // ldr x30, [x10]
	} {
		t.Run(c.name, func(t *testing.T) {
			row := []byte{0x0e, 32} // CFA=SP+32; the return address in x30
			u := New()
			u.SetTable(partsTable(t, part{[]uint32{insNop, c.w, raise, ret}, row}))
			s, regs := newStack(), start(codeLo+4, sp0)
			regs.X[9], regs.X[10], regs.X[30], regs.Known = codeCall, sp0+64, codeCall+8, 1<<31-1
			s.Set(sp0+64, codeCall)
			var f unwind.Frame
			_, stop := stepOf(u, &regs, true, s.Window(), &unwind.Bounds{Follow: true}, &f)
			expect.True(t, stop == unwind.StopNone && regs.PC == c.want && regs.Sp == sp0+32,
				"%v, pc %#x, sp %#x by %v", stop, regs.PC, regs.Sp, u.trust)
		})
	}
}

// TestRestoredLate: registers that a row lists as restored too early are read from where the code loads them
// afterwards.
func TestRestoredLate(t *testing.T) {
	// mov sp, x29; ldp x29, x30, [sp]; ldr x19, [sp, #16]; ldp d8, d9, [sp, #24]; ldr d10, [sp, #40];
	// add sp, sp, #48; ret
	code := []uint32{0x910003bf, 0xa9407bfd, 0xf9400bf3, 0x6d41a7e8, 0xfd4017ea, 0x9100c3ff, 0xd65f03c0}
	// CFA=SP+48; x29, x30, x19 saved; at index 2 as at the start
	row := []byte{0x0e, 48, 0x9d, 6, 0x9e, 5, 0x93, 4, 0x48, 0xdd, 0xde, 0xd3}
	const now, word = 0x8000, 0x9000
	for at, loaded := range []struct{ x19, d9, d10 bool }{{true, false, false}, {true, true, true},
		{true, true, true}, {false, true, true}, {false, false, true}, {}} {
		u, s, regs := unwinder(partsTable(t, part{code, row})), newStack(), start(codeLo+4*uint64(at), sp0)
		regs.X[29], regs.X[30], regs.X[19], regs.D[1], regs.D[2], regs.Known = sp0, codeCall, now+19,
			now+9, now+10, 1<<31-1|0xff<<32
		s.Set(sp0, 29)
		s.Set(sp0+8, codeCall)
		s.Set(sp0+16, word+19)
		s.Set(sp0+32, word+9)
		s.Set(sp0+40, word+10)
		var f unwind.Frame
		_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
		value := func(n uint64, loaded bool) uint64 {
			if loaded {
				return word + n
			}
			return now + n
		}
		got, want := [3]uint64{regs.X[19], regs.D[1], regs.D[2]},
			[3]uint64{value(19, loaded.x19), value(9, loaded.d9), value(10, loaded.d10)}
		expect.True(t, got == want, "at %d: x19, d9, d10 %#x, want %#x", at, got, want)
		if stop != unwind.StopNone || regs.PC != codeCall || regs.Sp != sp0+48 || regs.Known>>32&7 != 7 {
			t.Errorf("at %d: %v, pc %#x, sp %#x, known %#x", at, stop, regs.PC, regs.Sp, regs.Known)
		}
	}
	undefined := []byte{0x0e, 32, 0x07, 30} // x30
	u, s, regs := unwinder(partsTable(t, part{code, undefined})), newStack(), start(codeLo+4, sp0)
	var f unwind.Frame
	_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.EndOfStack, "a root that loads x30: %v", stop)
}
