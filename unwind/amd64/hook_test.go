package amd64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// testHooks are return hooks like those of a runtime. The call frame information of the first
// places the return address a word too high. The second is the same with unknown code. The
// third is in a PE image, whose unwind data places the return address a word too low. The
// true address is there after a call.
var (
	hijackPushes   = []byte{0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54}
	hijackPushesPE = []byte{0x48, 0x8b, 0xd4, 0x50, 0x52, 0x41, 0x57}
	testHooks      = []unwind.ReturnHook{
		{Arch: context.ArchAMD64, Code: hijackPushes, Off: -8},
		{Arch: context.ArchAMD64, Off: -8},
		{Arch: context.ArchAMD64, PE: true, Code: hijackPushesPE, Off: 8, Late: true},
	}
)

// A return hook is recognized by its first bytes, although a stale return address
// into a module is above its frame.
func TestLandingByItsCode(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   []byte
		ip, sp uint64
	}{
		{"the stub", hijackPushes, jitIP, sp0 + 16},
		{"another function", []byte{0x55, 0x53, 0x41, 0x57}, at(1), sp0 + 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			// rbx at CFA-24 by the rules: CFA-16 from the true one.
			rules := makeTable(t, 1, fn{Program: []byte{0x0e, 24, 0x80 | 3, 3}},
				fn{Program: []byte{0x07, 16}}).At(0)
			image := codeTable(t, c.code).At(0)
			both := *rules
			both.ELF = image.ELF
			table := module.NewTable(1, []module.Module{both}, []memory.Range{{Start: jitLo, End: jitHi}})
			u := unwinder(table)
			u.SetReturnHooks(testHooks)
			s, r := newStack(), start(at(0), sp0)
			s.Set(sp0+16, at(1)) // stale: a module's address
			s.Set(sp0+8, jitIP)
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			must.True(t, stop == unwind.StopNone, "%v", stop)
			if r.RIP != c.ip || r.SP() != c.sp || f.CFA != c.sp || r.GPR[context.RBX] != s.Word(sp0) {
				t.Errorf("at %#x/%#x, CFA %#x, rbx %#x", r.RIP, r.SP(), f.CFA, r.GPR[context.RBX])
			}
		})
	}
}

// The walker assumes a return hook with unknown code on two conditions. A return address is in
// no known code, and the word below it is a return address in managed code, which the hook has
// pushed. Below SP, such a word is stale and does not count.
func TestLandingUnlisted(t *testing.T) {
	const nowhere uint64 = jitHi + 0x1000
	// The stack pointer after the return is 16 bytes above the CFA.
	moved := []byte{cfi.DW_CFA_val_offset_sf, dwarfRSP, 0x7e}
	for _, c := range []struct {
		name   string
		bytes  byte // of the frame, with its return address
		more   []byte
		ra     uint64
		ip, sp uint64
		stop   unwind.Stop
	}{
		{"a hook that has pushed", 16, nil, nowhere, jitIP, sp0 + 8, unwind.StopNone},
		{"a hook above nothing", 16, nil, 0, jitIP, sp0 + 8, unwind.StopNone},
		{"a function that moves the stack pointer", 16, moved, nowhere, nowhere, sp0 + 32, unwind.StopNone},
		{"a function at its first instruction", 8, nil, nowhere, nowhere, sp0 + 8, unwind.StopNone},
		{"a function at its first instruction, above nothing", 8, nil, 0, 0, sp0, unwind.NullReturn},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := *makeTable(t, 1, fn{Program: append([]byte{0x0e, c.bytes}, c.more...)}).At(0)
			u := unwinder(module.NewTable(1, []module.Module{code},
				[]memory.Range{{Start: jitLo, End: jitHi}}))
			u.SetReturnHooks([]unwind.ReturnHook{{Arch: context.ArchAMD64, Off: -8}})
			s, r := newStack(), start(at(0), sp0)
			cfa := sp0 + uint64(c.bytes)
			s.Set(cfa-16, jitIP)
			s.Set(cfa-8, c.ra)
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			if stop != c.stop || stop == unwind.StopNone && (r.RIP != c.ip || r.SP() != c.sp) {
				t.Errorf("%v at %#x/%#x", stop, r.RIP, r.SP())
			}
			r = start(at(0), sp0)
			var frames [1]unwind.Frame
			if walkOf(u, &r, true, unwind.TrustContext, s.Window(), nil,
				frames[:]); stop == unwind.StopNone && (r.RIP != c.ip || r.SP() != c.sp) {
				t.Errorf("a walk at %#x/%#x", r.RIP, r.SP())
			}
		})
	}
}

// At a call, a return hook's row may list its pushes only at their true places. For other rows,
// the code is not read; for these, it decides.
func TestLandingByItsRow(t *testing.T) {
	stub := []byte{0x0e, 64, 0x80 | 6, 3, 0x80 | 3, 4, 0x80 | 15, 5, 0x80 | 14, 6, 0x80 | 13, 7, 0x80 | 12, 8}
	other := []byte{0x0e, 64, 0x80 | 6, 3, 0x80 | 3, 4, 0x80 | 15, 6, 0x80 | 14,
		5, 0x80 | 13, 7, 0x80 | 12, 8}
	for _, c := range []struct {
		name    string
		program []byte
		reads   int
		sp      uint64
	}{
		{"the stub", stub, 1, sp0 + 56},
		{"registers in other places", other, 0, sp0 + 64},
		{"fewer registers", stub[:len(stub)-2], 1, sp0 + 56},
		{"the CLR's stub: pushes only", []byte{0x0e, 64}, 1, sp0 + 56},
		{"too few pushes", []byte{0x0e, 56}, 0, sp0 + 56},
	} {
		rules := makeTable(t, 1, fn{Program: c.program}).At(0)
		both, image := *rules, &countedImage{code: hijackPushes}
		both.Image = image
		u := unwinder(module.NewTable(1, []module.Module{both}, []memory.Range{{Start: jitLo, End: jitHi}}))
		u.SetReturnHooks(testHooks)
		s, r, f := newStack(), start(at(0), sp0), unwind.Frame{}
		_, stop := stepOf(u, &r, false, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && r.SP() == c.sp && image.reads == c.reads,
			"%s: %v, SP %#x, code read %d times; want %#x, %d", c.name, stop, r.SP(), image.reads, c.sp,
			c.reads)
	}
}

// countedImage is an image of System V that counts how often its code is read.
type countedImage struct {
	code  []byte
	reads int
}

func (i *countedImage) Bytes(uint64, int) []byte { i.reads++; return i.code }
func (*countedImage) CFIBase() uint64            { return 0 }
func (*countedImage) Starts(uint64) bool         { return false }
func (*countedImage) Entry() (uint64, bool)      { return 0, false }
func (*countedImage) SystemV() bool              { return true }

// The stub of .NET 10 for Windows, with the unwind data it has there: the word
// it takes for the return address is what rdx was.
var (
	hijackPE = []byte{
		0x48, 0x8b, 0xd4, 0x50, 0x52, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54,
		0x55, 0x53, 0x56, 0x57, 0x51, 0x50,
		0x48, 0x8b, 0xcc, 0x48, 0x83, 0xec, 0x30, 0x66, 0x0f, 0x7f, 0x44, 0x24, 0x20, 0xe8, 0, 0, 0, 0,
		0x66, 0x0f, 0x6f, 0x44, 0x24, 0x20,
		0x48, 0x83, 0xc4, 0x30, 0x58, 0x59, 0x5f, 0x5e, 0x5b, 0x5d, 0x41, 0x5c, 0x41, 0x5d,
		0x41, 0x5e, 0x41, 0x5f, 0x5a, 0xc3,
	}
	hijackInfoPE = info(1, 0, 0x20, 0, 0x20, 0x08, 2, 0, 0x1a, 0x52, 0x13, 0x02, 0x12, 0x02, 0x11, 0x70, 0x10,
		0x60, 0xf, 0x30, 0xe, 0x50, 0xd, 0xc0, 0xb, 0xd0, 9, 0xe0, 7, 0xf0)
)

func TestLandingPE(t *testing.T) {
	const r15 = peRSP + 0x30 + 9*8 // where it is saved: xmm0's room and the words of rax to r14 lie below
	for _, c := range []struct {
		name   string
		code   []byte
		into   uint32
		exact  bool
		rsp    uint64
		slot   uint64 // what the runtime has written
		stop   unwind.Stop
		ip, sp uint64 // of the caller
	}{
		{"the runtime was called", hijackPE, 0x25, false, peRSP, jitIP, unwind.StopNone, jitIP, r15 + 24},
		{"it has not written yet", hijackPE, 0x25, false, peRSP, 5, unwind.NoInfo, 0, 0},
		{"before the call", hijackPE, 0x20, true, peRSP, jitIP, unwind.NoInfo, 0, 0},
		{"at the first byte", hijackPE, 0, true, peRSP, jitIP, unwind.NoInfo, 0, 0},
		{"its epilog", hijackPE, 0x2b, true, peRSP, jitIP, unwind.StopNone, jitIP, r15 + 24},
		{"its ret", hijackPE, 0x3e, true, r15 + 16, jitIP, unwind.StopNone, jitIP, r15 + 24},
		{"another function", append([]byte{0x48, 0x8b, 0xc4}, hijackPE[3:]...), 0x25, false, peRSP, jitIP,
			unwind.StopNone, word(r15 + 8), r15 + 16},
	} {
		for _, cached := range []bool{false, true} {
			m := module.Module{ID: 1, Start: peBase, End: peBase + 1<<20, Bias: peBase,
				PE: peImage(hijackInfoPE, c.code)}
			u := unwinder(module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}}))
			u.SetReturnHooks(testHooks)
			u.DisableCache(!cached)
			mem := peMemory()
			b, _ := mem.Bytes(r15+16, 8)
			binary.LittleEndian.PutUint64(b, c.slot)
			regs, f := peRegs(peFn+c.into), unwind.Frame{}
			regs.GPR[context.RSP] = c.rsp
			_, stop := stepOf(u, &regs, c.exact, mem, nil, &f)
			if stop != c.stop || stop == unwind.StopNone &&
				(regs.RIP != c.ip || regs.SP() != c.sp || f.CFA != c.sp) {
				t.Errorf("%s: %v, at %#x/%#x, CFA %#x", c.name, stop, regs.RIP, regs.SP(), f.CFA)
			}
			if stop == unwind.StopNone && c.into != 0x3e && regs.GPR[context.R15] != word(r15) {
				t.Errorf("%s: r15 %#x", c.name, regs.GPR[context.R15])
			}
		}
	}
}

// HookReturn returns any word in the return address's place, although a walk refuses it: it may be
// an address in code that is newer than the module table.
func TestLanded(t *testing.T) {
	const r15, newer = peRSP + 0x30 + 9*8, jitHi + 0x123
	for _, c := range []struct {
		name  string
		code  []byte
		into  uint32
		exact bool
		slot  uint64
		ok    bool
	}{
		{"code that is newer than the table", hijackPE, 0x25, false, newer, true},
		{"no address", hijackPE, 0x25, false, 5, true},
		{"before the call nothing is there", hijackPE, 0x20, true, newer, false},
		{"another function", append([]byte{0x48, 0x8b, 0xc4}, hijackPE[3:]...), 0x25, false, newer, false},
	} {
		m := module.Module{ID: 1, Start: peBase, End: peBase + 1<<20, Bias: peBase,
			PE: peImage(hijackInfoPE, c.code)}
		u := unwinder(module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}}))
		u.SetReturnHooks(testHooks)
		mem := peMemory()
		b, _ := mem.Bytes(r15+16, 8)
		binary.LittleEndian.PutUint64(b, c.slot)
		regs := context.FromAMD64(peRegs(peFn + c.into))
		regs.AMD64.GPR[context.RSP] = peRSP
		before := regs
		at := unwind.State{Regs: &regs, Exact: c.exact}
		to, ok := u.HookReturn(&at, mem)
		if ok != c.ok || ok && (to.RIP != c.slot || to.SP() != r15+24 || to.GPR[context.R15] != word(r15)) ||
			regs != before {
			t.Errorf("%s: %v, at %#x/%#x", c.name, ok, to.RIP, to.SP())
		}
	}
}
