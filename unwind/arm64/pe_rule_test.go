package arm64

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	testSP = 0x7f0000001000
	testLR = 0x7ff600001230
	testFP = testSP + 0x200
)

// wordAt is what the test stack holds at an address.
func wordAt(addr uint64) uint64 { return addr*mul64 | 1<<48 }

// testStack is 64 KiB of such words around testSP.
func testStack() *memory.Window {
	data := make([]byte, 64<<10)
	for i := 0; i < len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], wordAt(testSP-4096+uint64(i)))
	}
	return memory.New(memory.Run{Addr: testSP - 4096, Data: data})
}

func testRegs() Registers {
	r := Registers{PC: 0x7ff600000100, Sp: testSP, Known: 1<<31 - 1 | 0xff<<32}
	for i := range r.X {
		r.X[i] = 0x100 + uint64(i)
	}
	for i := range r.D {
		r.D[i] = 0x800 + uint64(i)
	}
	r.X[regFP], r.X[regLR] = testFP, testLR
	return r
}

// effect is what codes do: the caller's SP, and which registers come from
// where.
type effect struct {
	name  string
	codes []byte
	sp    uint64
	saved map[int]uint64 // slot: address
	pc    uint64         // 0: lr, or what was read into it
	exact bool
	slow  bool // cannot be packed into a rule
}

func x(n int) int { return n - firstX }
func d(n int) int { return n - 8 + numX }

// One line per code, worked out by hand.
var effects = []effect{
	{name: "none", codes: []byte{0xe4}, sp: testSP},
	{name: "alloc_s", codes: []byte{0x03, 0xe4}, sp: testSP + 48},
	{name: "alloc_m", codes: []byte{0xc1, 0x00, 0xe4}, sp: testSP + 4096},
	{name: "alloc_l", codes: []byte{0xe0, 0, 2, 0, 0xe4}, sp: testSP + 8192},
	{name: "save_r19r20_x", codes: []byte{0x24, 0xe4}, sp: testSP + 32,
		saved: map[int]uint64{x(19): testSP, x(20): testSP + 8}},
	{name: "save_fplr", codes: []byte{0x42, 0xe4}, sp: testSP,
		saved: map[int]uint64{x(29): testSP + 16, x(30): testSP + 24}},
	{name: "save_fplr_x", codes: []byte{0x81, 0xe4}, sp: testSP + 16,
		saved: map[int]uint64{x(29): testSP, x(30): testSP + 8}},
	{name: "save_regp", codes: []byte{0xc8, 0x82, 0xe4}, sp: testSP,
		saved: map[int]uint64{x(21): testSP + 16, x(22): testSP + 24}},
	{name: "save_regp_x", codes: []byte{0xcc, 0x83, 0xe4}, sp: testSP + 32,
		saved: map[int]uint64{x(21): testSP, x(22): testSP + 8}},
	{name: "save_reg", codes: []byte{0xd0, 0x81, 0xe4}, sp: testSP, saved: map[int]uint64{x(21): testSP + 8}},
	{name: "save_reg_x", codes: []byte{0xd4, 0x41, 0xe4}, sp: testSP + 16,
		saved: map[int]uint64{x(21): testSP}},
	{name: "save_lrpair", codes: []byte{0xd6, 0x42, 0xe4}, sp: testSP,
		saved: map[int]uint64{x(21): testSP + 16, x(30): testSP + 24}},
	{name: "save_fregp", codes: []byte{0xd8, 0x42, 0xe4}, sp: testSP,
		saved: map[int]uint64{d(9): testSP + 16, d(10): testSP + 24}},
	{name: "save_fregp_x", codes: []byte{0xda, 0x03, 0xe4}, sp: testSP + 32,
		saved: map[int]uint64{d(8): testSP, d(9): testSP + 8}},
	{name: "save_freg", codes: []byte{0xdc, 0x41, 0xe4}, sp: testSP, saved: map[int]uint64{d(9): testSP + 8}},
	{name: "save_freg_x", codes: []byte{0xde, 0x21, 0xe4}, sp: testSP + 16,
		saved: map[int]uint64{d(9): testSP}},
	{name: "save_fregp of d15 and d16", codes: []byte{0xd9, 0xc0, 0xe4}, sp: testSP,
		saved: map[int]uint64{d(15): testSP}},
	{name: "set_fp", codes: []byte{0xe1, 0xe4}, sp: testFP},
	{name: "add_fp", codes: []byte{0xe2, 4, 0xe4}, sp: testFP - 32},
	{name: "nop", codes: []byte{0xe3, 0xe4}, sp: testSP},
	{name: "end_c goes on", codes: []byte{0x01, 0xe5, 0x02, 0xe4}, sp: testSP + 48},
	{name: "save_next", codes: []byte{0xe6, 0xe6, 0x26, 0xe4}, sp: testSP + 48, saved: map[int]uint64{
		x(19): testSP, x(20): testSP + 8, x(21): testSP + 16, x(22): testSP + 24,
		x(23): testSP + 32, x(24): testSP + 40}},
	{name: "save_next to lr", codes: []byte{0xe6, 0xca, 0x00, 0xe4}, sp: testSP, saved: map[int]uint64{
		x(27): testSP, x(28): testSP + 8, x(29): testSP + 16, x(30): testSP + 24}},
	{name: "save_any_reg x27", codes: []byte{0xe7, 0x1b, 0x0b, 0xe4}, sp: testSP,
		saved: map[int]uint64{x(27): testSP + 88}},
	{name: "save_any_reg x5", codes: []byte{0xe7, 0x05, 0x0b, 0xe4}, sp: testSP},
	{name: "save_any_reg x19 pair", codes: []byte{0xe7, 0x53, 0x04, 0xe4}, sp: testSP,
		saved: map[int]uint64{x(19): testSP + 64, x(20): testSP + 72}},
	{name: "save_any_reg q8 pair pre", codes: []byte{0xe7, 0x68, 0x81, 0xe4}, sp: testSP + 32,
		saved: map[int]uint64{d(8): testSP, d(9): testSP + 16}},
	{name: "pac_sign_lr live", codes: []byte{0xfc, 0xe4}, sp: testSP},
	{name: "pac_sign_lr", codes: []byte{0x81, 0xfc, 0xe4}, sp: testSP + 16,
		saved: map[int]uint64{x(29): testSP, x(30): testSP + 8}, pc: wordAt(testSP+8) & (1<<48 - 1)},
	{name: "a register saved behind x29, then set_fp",
		codes: []byte{0xc8, 0x02, 0xe1, 0x81, 0xe4}, sp: testFP + 16,
		saved: map[int]uint64{x(19): testSP + 16, x(20): testSP + 24, x(29): testFP, x(30): testFP + 8},
		slow:  true},
	{name: "clear_unwound_to_call", codes: []byte{0xec, 0xe4}, sp: testSP, exact: true},
	{name: "machine_frame", codes: []byte{0x01, 0xe9, 0xe4}, sp: wordAt(testSP + 16),
		pc: wordAt(testSP + 24), exact: true, slow: true},
	{name: "set_fp of a restored x29", codes: []byte{0x81, 0xe1, 0xe4}, sp: wordAt(testSP),
		saved: map[int]uint64{x(29): testSP, x(30): testSP + 8}, slow: true},
	{name: "alloc beyond a rule", codes: []byte{0xe0, 0xff, 0xff, 0xff, 0xc8, 0x00, 0xe4}, slow: true},
}

func TestUndo(t *testing.T) {
	mem := testStack()
	for i := range effects {
		e := &effects[i]
		t.Run(e.name, func(t *testing.T) {
			u := New()
			regs := testRegs()
			f := unwind.Frame{}
			exact, stop := leaveOf(&regs, true,
				func(s *unwind.State) (bool, unwind.Stop) {
					return u.runCodes(e.codes, s, mem,
						&unbounded, &f)
				})
			if e.sp == 0 {
				expect.True(t, stop == unwind.Unreadable, "run: %v", stop)
			} else {
				checkEffect(t, "run", e, &regs, exact, stop)
			}
			u.undo.compile()
			o := u.undo.codes(e.codes)
			r, ok := u.undo.pack(3)
			packed := o == undone && ok
			must.True(t, packed != e.slow, "compile: outcome %d, fits %v", o, ok)
			if e.slow {
				return
			}
			regs = testRegs()
			stop = stepRule(t, &r, &regs, true, mem, &f)
			checkEffect(t, "rule", e, &regs, r.saved&flagExact != 0, stop)
			regs = testRegs()
			stop = stepRule(t, &r, &regs, false, mem, &f)
			if _, saved := e.saved[slotLR]; saved || e.exact { // exact: x30 is the interrupted pc
				checkEffect(t, "rule of a caller", e, &regs, e.exact, stop)
			} else { // the call has changed x30
				expect.True(t, stop == unwind.BadInfo, "rule of a caller: %v, want %v", stop, unwind.BadInfo)
			}
			expect.True(t, r.Module() == 3, "module %d", r.Module())
		})
	}
}

func checkEffect(t *testing.T, how string, e *effect, regs *Registers, exact bool, stop unwind.Stop) {
	t.Helper()
	want := testRegs()
	want.Sp, want.PC = e.sp, testLR
	for slot, addr := range e.saved {
		setSlot(&want, slot, wordAt(addr))
	}
	if _, ok := e.saved[slotLR]; ok {
		want.PC = wordAt(e.saved[slotLR])
	}
	if e.pc != 0 {
		want.PC = e.pc
	}
	if stop != unwind.StopNone || exact != e.exact {
		t.Errorf("%s: stop %v, exact %v", how, stop, exact)
		return
	}
	d := samePreserved(regs, &want)
	expect.True(t, d == "", "%s: %s: pc %#x sp %#x, want %#x %#x", how, d, regs.PC, regs.Sp, want.PC, want.Sp)
}

// A whole context on the stack, both shapes.
func TestUndoContexts(t *testing.T) {
	mem := testStack()
	for _, c := range []struct {
		name           string
		code           byte
		sp, pc, fp, lr uint64
		x19, d8        uint64
	}{
		{"context", 0xea, ctxSP, ctxPC, 0xf0, 0xf8, 0xa0, 0x190},
		{"ec_context", 0xeb, 0x98, 0xf8, 0xa0, 0x120, 0xd8, 0x220},
	} {
		u := New()
		regs := testRegs()
		f := unwind.Frame{}
		exact, stop := leaveOf(&regs, false, func(s *unwind.State) (bool, unwind.Stop) {
			return u.runCodes([]byte{0x01, c.code, 0xe4}, s, mem, &unbounded, &f)
		})
		at := uint64(testSP + 16)
		got := [6]uint64{regs.Sp, regs.PC, regs.X[29], regs.X[30], regs.X[19], regs.D[0]}
		want := [6]uint64{wordAt(at + c.sp), wordAt(at + c.pc), wordAt(at + c.fp), wordAt(at + c.lr),
			wordAt(at + c.x19), wordAt(at + c.d8)}
		expect.True(t, got == want && exact && stop == unwind.StopNone,
			"%s: %x, want %x, exact %v, stop %v", c.name, got, want, exact, stop)
		expect.Equal(t, !known(&regs, 13), c.code == 0xeb, "%s: x13 unknown", c.name)
	}
}

func TestUndoRefused(t *testing.T) {
	mem := testStack()
	for _, c := range []struct {
		name  string
		codes []byte
		exact bool
		want  unwind.Stop
	}{
		{"truncated", []byte{0xe0, 1}, true, unwind.BadInfo},
		{"reserved", []byte{0xed, 0xe4}, true, unwind.BadInfo},
		{"alloc_z", []byte{0xdf, 1, 0xe4}, true, unwind.Unsupported},
		{"trap_frame", []byte{0xe8, 0xe4}, true, unwind.Unsupported},
		{"save_next without a pair", []byte{0xe6, 0xd0, 0x00, 0xe4}, true, unwind.BadInfo},
		{"save_next at the end", []byte{0xe6, 0xe4}, true, unwind.BadInfo},
		{"save_next before an alloc", []byte{0xe6, 0x01, 0xe4}, true, unwind.BadInfo},
		{"save_next of lr", []byte{0xe6, 0x81, 0xe4}, true, unwind.BadInfo},
		{"live lr behind a call", []byte{0x01, 0xe4}, false, unwind.BadInfo},
		{"below the stack", []byte{0xe2, 0xff, 0xe4}, true, unwind.NoProgress},
		{"unreadable", []byte{0xc7, 0xff, 0xc7, 0xff, 0x81, 0xe4}, true, unwind.Unreadable},
		{"unreadable context", []byte{0xc7, 0xff, 0xc7, 0xff, 0xea, 0xe4}, true, unwind.Unreadable},
		{"unreadable machine frame", []byte{0xc7, 0xff, 0xc7, 0xff, 0xe9, 0xe4}, true, unwind.Unreadable},
	} {
		u := New()
		regs := testRegs()
		f := unwind.Frame{}
		_, stop := leaveOf(&regs, c.exact,
			func(s *unwind.State) (bool, unwind.Stop) {
				return u.runCodes(c.codes, s, mem,
					&unbounded, &f)
			})
		expect.True(t, stop == c.want, "%s: %v, want %v", c.name, stop, c.want)
		expect.True(t, regs == testRegs() && f.CFA == 0, "%s: registers changed", c.name)
	}
}

// An entry is one cache line: the warm walk's speed depends on it.
func TestEntrySize(t *testing.T) {
	n := unsafe.Sizeof(entry{})
	expect.True(t, n == 64, "an entry has %d bytes, want 64", n)
}

// Random codes: no panic, and wherever they fit a rule, the rule does what
// running them does.
func TestRandomCodes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	mem, u := testStack(), New()
	packed := 0
	for range 200000 {
		codes := make([]byte, 1+rnd.IntN(24))
		for i := range codes {
			codes[i] = byte(rnd.UintN(256))
			if rnd.IntN(4) == 0 {
				codes[i] = []byte{0x01, 0x24, 0x42, 0x81, 0xc8, 0xd0, 0xd6, 0xd8, 0xe1, 0xe2, 0xe3, 0xe4,
					0xe6, 0xe7, 0xe9, 0xfc}[rnd.IntN(16)]
			}
		}
		slow, fast := testRegs(), testRegs()
		var f, g unwind.Frame
		exact, stop := leaveOf(&slow, true,
			func(s *unwind.State) (bool, unwind.Stop) { return u.runCodes(codes, s, mem, &unbounded, &f) })
		u.undo.compile()
		if u.undo.codes(codes) != undone {
			continue
		}
		r, ok := u.undo.pack(0)
		if !ok || stop == unwind.Unreadable {
			continue // a rule loses a register that cannot be read, and the walk continues
		}
		packed++
		stop2 := stepRule(t, &r, &fast, true, mem, &g)
		if stop != stop2 || slow != fast || f.CFA != g.CFA ||
			exact != (r.saved&flagExact != 0 && stop == unwind.StopNone) {
			t.Fatalf("%x: run %v at %#x/%#x, rule %v at %#x/%#x", codes, stop, slow.PC,
				slow.Sp, stop2, fast.PC, fast.Sp)
		}
	}
	expect.Figures(t, packed >= 1000, "%d sequences packed", packed)
}

var hotUnwinder = New()

// stepRule runs a rule of slots in both ways there are.
func stepRule(t testing.TB, r *Rule, regs *Registers, exact bool, mem *memory.Window,
	f *unwind.Frame) unwind.Stop {
	t.Helper()
	hot, g := *regs, unwind.Frame{}
	ok := hotUnwinder.stepHot(r, &hot, exact, mem, &unbounded, &g)
	_, stop := leaveOf(regs, exact, func(s *unwind.State) (bool, unwind.Stop) {
		return false, hotUnwinder.stepSlots(r, s, mem, &unbounded, f)
	})
	if ok && (stop != unwind.StopNone || hot != *regs || g.CFA != f.CFA) {
		t.Fatalf("hot %x CFA %#x, else %v %x CFA %#x", hot, g.CFA, stop, *regs, f.CFA)
	}
	return stop
}
