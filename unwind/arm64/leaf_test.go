package arm64

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// TestLeafPE: a function that a PE image does not list is certainly a leaf if its code
// agrees. Otherwise its code is followed, and the platform's rule is doubtful.
func TestLeafPE(t *testing.T) {
	const (
		ret, callX8  = 0xd65f03c0, 0xd63f0100
		paciasp      = 0xd503233f
		autiasp      = 0xd50323bf
		pushed       = sp0 + 0x20
		leaf, code   = unwind.TrustLeaf, unwind.TrustCode
		caller, none = uint64(codeCall), uint64(0)
	)
	for _, c := range []struct {
		name  string
		code  []uint32
		at    uint64 // bytes into it
		used  bool   // x30 holds something else by now
		ret   bool   // behind a call
		pc    uint64 // none: no caller is found
		sp    uint64
		kind  Kind
		trust unwind.Trust
	}{
		{"straight", []uint32{0x8b010000, ret}, 0, false, false, caller, sp0, RuleLeafPE, leaf},
		{"of two ways", []uint32{0x34000040, 0xd65f03c0, 0x91000400, ret}, 0, false, false,
			caller, sp0, RuleLeafPE, leaf},
		{"with a loop", []uint32{0xf1000400, 0x54ffffe1, ret}, 0, false, false,
			caller, sp0, RuleLeafPE, leaf},
		{"that jumps on", []uint32{0x91000400, 0xd61f0200}, 0, false, false, caller, sp0, RuleLeafPE, leaf},
		{"that jumps on by x17", []uint32{0x91000400, 0xd61f0220}, 0, false, false,
			caller, sp0, RuleLeafPE, leaf},
		{"of more ways than are followed", slices.Concat(slices.Repeat([]uint32{0xb4000020}, maxPaths+1),
			[]uint32{ret}), 0, false, false, caller, sp0, RuleNoInfo, leaf},
		{"that switches", []uint32{0x91000400, 0xd61f0100}, 0, false, false, caller, sp0, RuleNoInfo, code},
		{"that may trap", []uint32{0x34000040, 0xd4200020, ret}, 0, false, false,
			caller, sp0, RuleLeafPE, leaf},
		{"signing, at its beginning", []uint32{paciasp, 0x91000400, autiasp, ret}, 0, false, false,
			caller, sp0, RuleNoInfo, leaf},
		{"for ever", []uint32{0x14000000}, 0, false, false, caller, sp0, RuleNoInfo, code},
		{"behind what it has pushed", []uint32{0xa9be7bfd, 0x91000400, 0xa8c27bfd, ret}, 4, true, false,
			caller, pushed, RuleNoInfo, leaf},
		{"behind a call", []uint32{0xa9be7bfd, callX8, 0xa8c27bfd, ret}, 8, true, true,
			caller, pushed, RuleNoInfo, leaf},
		{"behind a call, lost", []uint32{callX8, 0x14000000}, 4, true, true, none, sp0, RuleNoInfo, 0},
		{"behind a call, lost, with a return address left in x30", []uint32{callX8, 0x14000000}, 4, false,
			true, none, sp0, RuleNoInfo, 0},
		{"behind the room it has made", []uint32{0xd10083ff, 0x91000400, 0x910083ff, ret}, 4, false, false,
			caller, pushed, RuleNoInfo, leaf},
		{"that returns elsewhere", []uint32{0xaa0903fe, ret}, 0, false, false, caller, sp0, RuleNoInfo, code},
		{"that has put x30 aside and calls", []uint32{0xaa1e03f3, callX8, 0xaa1303fe, ret}, 0, false, false,
			caller, sp0, RuleNoInfo, code},
		{"whose part elsewhere pops", []uint32{0xa9be7bfd, 0x94000003, 0xa8c27bfd, ret, 0xa9414ff4, ret}, 4,
			true, false, none, sp0, RuleNoInfo, 0},
		{"that calls and does not keep x30", []uint32{callX8, ret}, 0, false, false,
			caller, sp0, RuleNoInfo, code},
		{"that returns by another register", []uint32{0xaa0803e9, 0xd65f0120}, 0, false, false,
			caller, sp0, RuleNoInfo, code},
		{"that leaves room behind", []uint32{0xd10083ff, ret}, 0, false, false,
			caller, sp0, RuleNoInfo, code},
		{"behind a call, at another function's beginning", []uint32{callX8, 0xd10083ff, 0xa8c27bfd, ret}, 4,
			true, true, none, sp0, RuleNoInfo, 0},
		{"unreadable", nil, 0, false, false, caller, sp0, RuleNoInfo, code},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s := unwinder(peTable(c.code)), newStack()
			s.Set(sp0, 0x2929)
			s.Set(sp0+8, codeCall)
			regs := start(peCode+c.at, sp0)
			regs.X[29], regs.X[30] = 0x1111, codeCall
			if c.used {
				regs.X[30] = 0x1234
			}
			regs.Known |= 1<<29 | 1<<30
			at := unwind.Address{IP: regs.PC, Exact: !c.ret}
			expect.Equal(t, u.lookup(at).Kind(), c.kind, "rule")
			var f unwind.Frame
			_, stop := stepOf(u, &regs, !c.ret, s.Window(), nil, &f)
			switch {
			case c.pc == none:
				expect.True(t, stop == unwind.NoInfo, "stop %v, pc %#x", stop, regs.PC)
			case stop != unwind.StopNone || regs.PC != c.pc || regs.Sp != c.sp || u.trust != c.trust ||
				regs.Known&^(nonvolatile|1<<regLR) != 0:
				t.Errorf("stop %v, pc %#x, sp %#x by %v, known %#x", stop, regs.PC, regs.Sp,
					u.trust, regs.Known)
			}
		})
	}
}

// TestZeroedPE: a function zeroes registers after its epilog, which its unwind data omits.
func TestZeroedPE(t *testing.T) {
	code := []uint32{0xa9bf53f3, 0x91000400, 0xd2800001, 0xf9400022, 0xa8c153f3, 0xd2800000, 0xd2800012,
		0x6f00e401, 0xd65f03c0, 0xd2800013, 0xd65f03c0}
	pdata := binary.LittleEndian.AppendUint32(nil, 0x1000)
	// stp x19, x20, [sp, -16]!
	pdata = binary.LittleEndian.AppendUint32(pdata, 1|uint32(len(code)+2)<<2|2<<16|1<<23)
	for _, c := range []struct {
		name  string
		at    uint64
		sp    uint64
		trust unwind.Trust
	}{
		{"the body", 4, sp0 + 16, unwind.TrustUnwindInfo},
		{"a register zeroed in the body", 8, sp0 + 16, unwind.TrustUnwindInfo},
		{"the epilog", 16, sp0 + 16, unwind.TrustUnwindInfo},
		{"the first register zeroed", 20, sp0, unwind.TrustLeaf},
		{"a vector register zeroed", 28, sp0, unwind.TrustLeaf},
		{"the return", 32, sp0, unwind.TrustLeaf},
		{"a register that callers keep", 36, sp0 + 16, unwind.TrustUnwindInfo},
		{"a return behind another instruction", 40, sp0 + 16, unwind.TrustUnwindInfo},
	} {
		u, s := unwinder(peTableOf(code, pdata)), newStack()
		regs := start(peCode+c.at, sp0)
		regs.X[30] = codeCall
		regs.Known |= 1 << 30
		var f unwind.Frame
		_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && regs.PC == codeCall && regs.Sp == c.sp &&
			u.trust == c.trust, "%s: stop %v, pc %#x, sp %#x by %v", c.name, stop, regs.PC, regs.Sp, u.trust)
	}
}

// TestUndeclaredSigning: unwind data that omits the first instruction is not used if that instruction
// signs the return address.
func TestUndeclaredSigning(t *testing.T) {
	const pacibsp, paciasp, bti = insPACIBSP, 0xd503233f, 0xd503245f
	for _, c := range []struct {
		name  string
		first uint32
		cr    uint32 // packed: 0, lr is not saved; 2, signed
		trust unwind.Trust
	}{
		{"pacibsp", pacibsp, 0, unwind.TrustLeaf},
		{"paciasp", paciasp, 0, unwind.TrustLeaf},
		{"declared", pacibsp, 2, unwind.TrustUnwindInfo},
		{"another hint", bti, 0, unwind.TrustUnwindInfo},
	} {
		code := []uint32{c.first, 0xa9bf53f3, 0xa9bf7bfd, 0x910003fd, 0xa8c17bfd, 0xa8c153f3, 0xd65f0fff}
		pdata := binary.LittleEndian.AppendUint32(nil, 0x1000)
		pdata = binary.LittleEndian.AppendUint32(pdata, 1|uint32(len(code))<<2|2<<16|c.cr<<21|(1+c.cr/2)<<23)
		u, s := unwinder(peTableOf(code, pdata)), newStack()
		regs := start(peCode+8, sp0) // behind the first save
		regs.X[30] = codeCall
		regs.Known |= 1 << 30
		var f unwind.Frame
		_, stop := stepOf(u, &regs, true, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && regs.PC == codeCall && regs.Sp == sp0+16 &&
			u.trust == c.trust,
			"%s: stop %v, pc %#x, sp %#x by %v", c.name, stop, regs.PC, regs.Sp, u.trust)
	}
}

const peCode = 0x6000_1000

// peTable is an image of ARM64 Windows without an exception directory whose code is code,
// beside one that has called it.
func peTable(code []uint32) *module.Table { return peTableOf(code, nil) }

func peTableOf(code []uint32, pdata []byte) *module.Table {
	var b []byte
	for _, w := range code {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	f := pe.FromBlocks(pe.MachineARM64, pdata, []pe.Block{{RVA: 0x1000, Data: b}})
	m := module.Module{ID: 2, Start: 0x6000_0000, End: 0x6001_0000, Bias: 0x6000_0000, PE: f}
	calls := pe.FromBlocks(pe.MachineARM64, nil,
		[]pe.Block{{RVA: codeCall - 4 - textBias, Data: []byte{0x10, 0, 0, 0x94}}})
	return module.NewTable(9,
		[]module.Module{m, {ID: 1, Start: textBias, End: textBias + 0x10000, Bias: textBias, PE: calls}}, nil)
}
