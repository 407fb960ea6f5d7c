package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// FuzzPEStepARM64 steps by any packed word or .xdata record through an
// unwinder: no panic, registers untouched after a stop, a stack pointer that
// only rises unless the caller was interrupted, no allocation, the same answer
// with and without caches.
func FuzzPEStepARM64(f *testing.F) {
	for _, from := range []vectors{{"arm64-native.jsonl.gz", 3}, {"arm64-packedx.jsonl.gz", 3}, {"arm64-winetest.jsonl.gz", 1}, {"malformed.jsonl.gz", 1}} {
		eachRecorded(f, from.file, from.every, func(r recorded) { f.Add(r.info, r.word&3*r.word, r.into, uint64(0x7000_0400), true) })
	}
	for _, code := range []byte{0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xfc, 0xdf} { // frames of the kernel, signing, SVE
		f.Add([]byte{16, 0, 0, 8, code, 0x81, 0xe4, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), true)
		f.Add([]byte{16, 0, 0, 8, 0xe1, code, 0x81, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), false)
	}
	for _, kind := range []byte{0x00, 0x40, 0x80} { // save_any_reg: x, d, q, with and without a pair
		f.Add([]byte{16, 0, 0, 8, 0xe7, 0x13, kind, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), true)
		f.Add([]byte{16, 0, 0, 8, 0xe7, 0x73, kind | 2, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), true)
	}
	u, plain := arm64.New(), arm64.New()
	plain.DisableCache(true)
	f.Fuzz(func(t *testing.T, xdata []byte, word, into uint32, fp uint64, exact bool) {
		const fn, at, base, stack = 0x1000, 0x5000, 0x1_4000_0000, 0x7000_0000
		if word&3 == 0 {
			word = at
		}
		dir := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, fn), word)
		im := pe.FromBlocks(pe.MachineARM64, dir, []pe.Block{{RVA: at, Data: xdata[:len(xdata):len(xdata)]}})
		mods := module.NewTable(generations.Add(1), []module.Module{{Start: base, End: base + 1<<32, Bias: base, PE: im}}, nil)
		u.SetTable(mods)
		plain.SetTable(mods)
		regs := arm64.Registers{PC: base + fn + uint64(into&0xffffc), Sp: stack + 512, Known: context.ARM64All}
		for i := range regs.X {
			regs.X[i] = fp + uint64(i)*16
		}
		from := regs.PC
		for _, d := range nearby {
			regs.PC = from + d
			checkStep(t, u, plain, context.FromARM64(regs), exact, stepStack(stack))
		}
	})
}
