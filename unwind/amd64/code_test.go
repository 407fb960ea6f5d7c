package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

const codeLo = textBias + 0x1000

// codeTable maps code at codeLo, in an ELF image without any unwind data. There is
// a call at codeLo+0x800, so codeCall is a plausible return address.
func codeTable(tb testing.TB, code []byte) *module.Table {
	tb.Helper()
	text := make([]byte, 0x1000)
	for i := range text {
		text[i] = 0xcc
	}
	copy(text, code)
	copy(text[0x800:], []byte{0xe8, 0, 0, 0, 0})
	f := must.Get(elf.New(elfasm.Code(elfasm.AMD64, codeLo-textBias, text), "code"))(tb)
	return module.NewTable(1,
		[]module.Module{{Start: textBias, End: textBias + 0x2000, Bias: textBias, ELF: f}},
		[]memory.Range{{Start: jitLo, End: jitHi}})
}

const codeCall = codeLo + 0x805

// TestStepByCode steps out of code without unwind data, at each of its instructions. words is how many words
// the code has pushed after the return address.
func TestStepByCode(t *testing.T) {
	type point struct{ at, words int }
	for _, c := range []struct {
		name   string
		code   []byte
		ret    bool // the points are return addresses
		points []point
	}{
		{"lazy linkage table entry", []byte{0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0},
			false, []point{{0, 0}, {6, 0}, {11, 1}}},
		{"linkage table header", []byte{0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0},
			false, []point{{0, 1}, {6, 2}}},
		{"IBT linkage table entry",
			[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90}, false,
			[]point{{0, 0}, {4, 0}, {9, 1}}},
		{"IBT linkage table entry without bnd",
			[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90},
			false, []point{{4, 0}, {9, 1}}},
		{"second linkage table",
			[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x44, 0, 0},
			false, []point{{0, 0}, {4, 0}}},
		{"linkage table of direct slots", []byte{0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90}, false, []point{{0, 0}}},
		{"a jump back", []byte{0xc3, 0xeb, 0xfd}, false, []point{{1, 0}}},
	} {
		for _, p := range c.points {
			for _, flip := range []bool{false, true} {
				checkByCode(t, c.name, c.code, p.at, p.words, !c.ret, flip)
			}
		}
	}
}

// checkByCode steps from one point. flip sets a return address that follows no call: then what the code seems
// to prove is refused, unless the code is a linkage table's.
func checkByCode(t *testing.T, name string, code []byte, off, words int, exact, flip bool) {
	t.Helper()
	u, s, r := unwinder(codeTable(t, code)), newStack(), start(codeLo+uint64(off), sp0)
	sp := sp0 + 8*uint64(words)
	if flip {
		s.Set(sp, codeCall-1)
	} else {
		s.Set(sp, codeCall)
	}
	_, plt := x86.LinkageDepth(u.table.At(0).Bytes, r.RIP)
	before := r
	var f unwind.Frame
	_, stop := stepOf(u, &r, exact, s.Window(), nil, &f)
	if flip && !plt {
		expect.True(t, stop == unwind.NoInfo && r == before,
			"%s+%d: stop %v with a return address after no call", name, off, stop)
		return
	}
	expect.True(t, stop == unwind.StopNone && r.SP() == sp+8 && u.trust == unwind.TrustLeaf &&
		r.GPR[context.RBX] == before.GPR[context.RBX],
		"%s+%d: stop %v, SP %#x, want %#x, trust %v", name, off, stop, r.SP(), sp+8, u.trust)
}

// TestCodeRestores: registers that the code pops are restored. A step out of code that makes calls is
// doubtful: the code after a call that never returns belongs to another function.
func TestCodeRestores(t *testing.T) {
	dtors := []byte{0x80, 0x3d, 1, 2, 3, 4, 0, 0x75, 0x2b, 0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0xc6,
		0x05, 1, 2, 3, 4, 1, 0x5d, 0xc3}
	start1 := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, 0x48, 0x8b, 5, 1, 2, 3, 4, 0x48, 0x85, 0xc0,
		0x74, 2, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3}
	for _, c := range []struct {
		name   string
		code   []byte
		off    int
		exact  bool
		fp, sp uint64 // of the caller; fp 0: unchanged
		trust  unwind.Trust
	}{
		{"before the push", dtors, 9, true, 0, sp0 + 8, unwind.TrustCode},
		{"after the push", dtors, 10, true, sp0, sp0 + 16, unwind.TrustCode},
		{"after the call", dtors, 18, false, sp0, sp0 + 16, unwind.TrustCode},
		{"at the return", dtors, 26, true, 0, sp0 + 8, unwind.TrustLeaf},
		{"leave", []byte{0xc9, 0xc3}, 0, true, sp0 + 0x40, sp0 + 0x50, unwind.TrustLeaf},
		{"mov rbx, rax; ret", []byte{0x48, 0x89, 0xc3, 0xc3}, 0, true, 0, sp0 + 8, unwind.TrustLeaf},
		{"_init", start1, 0, true, 0, sp0 + 8, unwind.TrustCode},
		{"_init at its call", start1, 20, true, 0, sp0 + 16, unwind.TrustCode},
		{"_init behind its call", start1, 22, false, 0, sp0 + 16, unwind.TrustCode},
		{"_init at its return", start1, 26, true, 0, sp0 + 8, unwind.TrustLeaf},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(codeTable(t, c.code)), newStack(), start(codeLo+uint64(c.off), sp0)
			r.GPR[context.RBP] = sp0 + 0x40
			want := r.FP()
			if c.fp != 0 {
				want = s.Word(c.fp)
			}
			s.Set(c.sp-8, codeCall)
			var f unwind.Frame
			_, stop := stepOf(u, &r, c.exact, s.Window(), &unwind.Bounds{Follow: true}, &f)
			expect.True(t, stop == unwind.StopNone && r.SP() == c.sp && r.FP() == want &&
				known(&r, context.RBP) && u.trust == c.trust,
				"stop %v, SP %#x FP %#x trust %v, want %#x %#x %v", stop, r.SP(), r.FP(), u.trust, c.sp, want,
				c.trust)
		})
	}
}

// TestCodeProvesNothing: code proves no caller if it calls, jumps to an unknown place, or does not reach a
// return. The stack holds return addresses everywhere.
func TestCodeProvesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  []byte
		exact bool
	}{
		{"nothing", nil, true},
		{"behind a call", []byte{0xc3}, false},
		{"a call", []byte{0xe8, 0, 0, 0, 0, 0xc3}, true},
		{"a switch through a table", []byte{0xff, 0x24, 0xdd, 0, 0, 0, 0}, true},
		{"a switch through a register", []byte{0x48, 0x01, 0xd0, 0xff, 0xe0}, true},
		{"a switch on one of two ways", []byte{0x74, 1, 0xc3, 0xff, 0xe0}, true},
		{"ways that do not agree", []byte{0x74, 1, 0xc3, 0x58, 0xc3}, true},
		{"RSP set", []byte{0x48, 0x89, 0xc4, 0xc3}, true},
		{"a loop", []byte{0xeb, 0xfe}, true},
		{"an instruction that traps", []byte{0x0f, 0x0b, 0xc3}, true},
		{"pop rsp", []byte{0x5c, 0xc3}, true},
		{"return with a pushed register", []byte{0x55, 0xc3}, true},
		{"ret imm16", []byte{0xc2, 8, 0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(codeTable(t, c.code)), newStack(), start(codeLo, sp0)
			for i := range uint64(32) {
				s.Set(sp0-64+8*i, codeCall)
			}
			before := r
			var f unwind.Frame
			_, stop := stepOf(u, &r, c.exact, s.Window(), nil, &f)
			expect.True(t, stop == unwind.NoInfo && r == before, "stop %v, want no-info", stop)
		})
	}
}

// The trampoline is known by its bytes, at its first instruction and at its
// system call, and restores every register of the interrupted frame.
func TestTrampolineByBytes(t *testing.T) {
	for i := range 4 {
		code := []byte("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05") // mov rax, 15; syscall
		if i < 2 {
			code = []byte("\xb8\x0f\x00\x00\x00\x0f\x05") // mov eax, 15; syscall
		}
		off := uint64(0)
		if i%2 != 0 {
			off = uint64(len(code) - 2) // at the system call
		}
		u, s, r := unwinder(codeTable(t, code)), newStack(), start(codeLo+off, sp0)
		s.Set(sp0+ucGregs+15*8, sp0-64)
		s.Set(sp0+ucRIP, codeLo+0x400)
		var f unwind.Frame
		exact, stop := stepOf(u, &r, false, s.Window(), nil, &f)
		must.True(t, stop == unwind.StopNone && exact && f.Kind == unwind.KindSignal &&
			r.RIP == codeLo+0x400 && r.SP() == sp0-64 && r.Known == 1<<16-1,
			"+%d: stop %v exact %v kind %v at %#x/%#x", off, stop, exact, f.Kind, r.RIP, r.SP())
		// The order of sys/ucontext.h.
		for i, reg := range []int{context.R8, context.R9, context.R10, context.R11, context.R12, context.R13,
			context.R14, context.R15, context.RDI, context.RSI, context.RBP, context.RBX, context.RDX,
			context.RAX, context.RCX} {
			if want := s.Word(sp0 + ucGregs + 8*uint64(i)); r.GPR[reg] != want {
				t.Errorf("+%d: register %d is %#x, want %#x", off, reg, r.GPR[reg], want)
			}
		}
		r = start(codeLo+off, sp0)
		_, stop = stepOf(u, &r, false, memory.New(), nil, &f)
		expect.True(t, stop == unwind.Unreadable, "+%d: stop %v in an empty window", off, stop)
	}
}

// TestCallOfNothing: a call through a null pointer, or near it, has pushed its return
// address and run no instruction. A word that does not follow a call is no return address.
func TestCallOfNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		ip    uint64
		word  uint64
		exact bool
		want  unwind.Stop
	}{
		{"a call of 0", 0, codeCall, true, unwind.StopNone},
		{"a call of 8", 8, codeCall, true, unwind.StopNone},
		{"a call elsewhere", 4096, codeCall, true, unwind.NoInfo},
		{"no call before the word", 0, codeCall - 1, true, unwind.NoInfo},
		{"a return address", 16, codeCall, false, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s := unwinder(codeTable(t, []byte{0xc3})), newStack()
			s.Set(sp0, c.word)
			r := start(c.ip, sp0)
			var f unwind.Frame
			_, stop := stepOf(u, &r, c.exact, s.Window(), nil, &f)
			must.True(t, stop == c.want, "%v, want %v", stop, c.want)
			if c.want == unwind.StopNone &&
				(r.RIP != codeCall || r.SP() != sp0+8 || u.trust != unwind.TrustLeaf) {
				t.Errorf("%#x/%#x by %v", r.RIP, r.SP(), u.trust)
			}
		})
	}
}

// The class of the code at an address is kept with its rule. An interrupted
// instruction shares its rule with the return address after it, but only the
// instruction can be in a linkage table's entry.
func TestCodeClassKept(t *testing.T) {
	plt := []byte{0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 2, 3, 4, 0xe9, 1, 2, 3, 4}
	points := []unwind.Address{{IP: codeLo, Exact: true}, {IP: codeLo + 1},
		{IP: codeLo + 6, Exact: true}, {IP: codeLo + 7}}
	step := func(u *Unwinder, a unwind.Address) (Registers, unwind.Stop) {
		s, r := newStack(), start(a.IP, sp0)
		s.Set(sp0, codeCall)
		var f unwind.Frame
		_, stop := stepOf(u, &r, a.Exact, s.Window(), nil, &f)
		return r, stop
	}
	table := codeTable(t, plt)
	for i := range points {
		u := unwinder(table)
		for k := range 2 * len(points) {
			a := points[(i+k)%len(points)]
			want, stop := step(unwinder(table), a)
			if got, stop2 := step(u, a); got != want || stop != stop2 {
				t.Errorf("from %d, %v: %v, %v after others; alone %v", i, a, got.RIP, stop2, stop)
			}
		}
	}
	_, stop := step(unwinder(table), points[0])
	expect.True(t, stop == unwind.StopNone, "%v", stop)
	_, stop = step(unwinder(table), points[1])
	expect.True(t, stop != unwind.StopNone, "a return address into the table was left")
}
