package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// FuzzPEStep steps by any unwind information and any code. For every input:
//
//   - no panic, no allocation, and a reason for each stop
//   - unchanged registers after a stop
//   - a stack pointer that only rises outside machine frames
//   - the same result with and without caches
func FuzzPEStep(f *testing.F) {
	seedPEStep(f)
	u, plain := amd64.New(), amd64.New()
	plain.DisableCache(true)
	f.Fuzz(func(t *testing.T, info, code []byte, into uint32, fp uint64, exact bool) {
		info, code = info[:len(info):len(info)], code[:len(code):len(code)]
		const fn, at, base, stack = 0x1000, 0x5000, 0x1_4000_0000, 0x7000_0000
		var dir []byte
		for _, v := range []uint32{fn, fn + uint32(min(len(code), 1<<16)), at} {
			dir = binary.LittleEndian.AppendUint32(dir, v)
		}
		im := pe.FromBlocks(pe.MachineAMD64, dir,
			[]pe.Block{{RVA: fn, Data: code[:min(len(code), 0x4000)]}, {RVA: at, Data: info}})
		mods := module.NewTable(generations.Add(1),
			[]module.Module{{Start: base, End: base + 1<<32, Bias: base, PE: im}}, nil)
		u.SetTable(mods)
		plain.SetTable(mods)
		mem := stepStack(stack)
		regs := amd64.Registers{RIP: base + fn + uint64(into&0xffff), Known: context.AMD64All}
		for i := range regs.GPR {
			regs.GPR[i] = fp
		}
		regs.GPR[context.RSP] = stack + 512
		from := regs.RIP
		for _, d := range nearby {
			regs.RIP = from + d
			checkStep(t, u, plain, context.FromAMD64(regs), exact, mem)
		}
	})
}

// stepStack is a stack of odd words, each another, which are no addresses.
func stepStack(addr uint64) *memory.Window {
	data := make([]byte, 4096)
	for i := range data {
		data[i] = byte(i>>3) | 1
	}
	return memory.New(memory.Run{Addr: addr, Data: data})
}

// seedPEStep adds the functions recorded from our own test programs.
func seedPEStep(f *testing.F) {
	f.Add([]byte{1, 5, 2, 0, 5, 0x32, 1, 0x50},
		[]byte{0x55, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3},
		uint32(5), uint64(0x7000_0400), true)
	for _, epilog := range [][]byte{
		{0x48, 0x83, 0xc4, 0x20, 0x5d, 0xe9, 0, 0x10, 0, 0},          // a tail jump out of the function
		{0x48, 0x83, 0xc4, 0x20, 0x5d, 0xeb, 0x80},                   // a short one
		{0x48, 0x83, 0xc4, 0x20, 0x5d, 0xeb, 0xf2},                   // to the function's own begin
		{0x48, 0x81, 0xc4, 0x20, 0, 0, 0, 0x41, 0x5c, 0xff, 0x25, 0}, // through a pointer, cut
		{0x48, 0x8d, 0x65, 0x10, 0x5d, 0xc3},                         // lea rsp, [rbp+10h]
		{0x48, 0x8d, 0xa5, 0x10, 0, 0, 0, 0x5d, 0xc2, 8, 0},          // the long form, ret 8
		{0x5d, 0xf3, 0xc3},       // rep ret
		{0x5d, 0x48, 0xff, 0xe0}, // jmp rax with REX.W
	} {
		code := append([]byte{0x55, 0x48, 0x83, 0xec, 0x20, 0x90, 0x90, 0x90}, epilog...)
		for _, info := range [][]byte{
			{1, 5, 2, 0, 5, 0x32, 1, 0x50},                // push, alloc
			{1, 5, 3, 0x25, 5, 3, 5, 0x32, 1, 0x50},       // with a frame register
			{2, 5, 4, 0, 2, 0x16, 8, 6, 5, 0x32, 1, 0x50}, // version 2
		} {
			f.Add(info, code, uint32(8), uint64(0x7000_0400), true)
		}
	}
	for _, from := range []vectors{{"amd64-native.jsonl.gz", 4},
		{"amd64-winetest.jsonl.gz", 1}, {"malformed.jsonl.gz", 1}} {
		eachRecorded(f, from.file, from.every,
			func(r recorded) { f.Add(r.info, r.code, r.into, uint64(0x7000_0400), true) })
	}
}

// FuzzPEStepARM64 steps by any packed word or .xdata record. For every input:
//
//   - no panic, and no allocation
//   - unchanged registers after a stop
//   - a stack pointer that only rises unless the caller was interrupted
//   - the same result with and without caches
func FuzzPEStepARM64(f *testing.F) {
	for _, from := range []vectors{{"arm64-native.jsonl.gz", 3}, {"arm64-packedx.jsonl.gz", 3},
		{"arm64-winetest.jsonl.gz", 1}, {"malformed.jsonl.gz", 1}} {
		eachRecorded(f, from.file, from.every,
			func(r recorded) { f.Add(r.info, r.word&3*r.word, r.into, uint64(0x7000_0400), true) })
	}
	for _, code := range []byte{0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xfc, 0xdf} { // kernel frames, signing, SVE
		f.Add([]byte{16, 0, 0, 8, code, 0x81, 0xe4, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), true)
		f.Add([]byte{16, 0, 0, 8, 0xe1, code, 0x81, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), false)
	}
	for _, kind := range []byte{0x00, 0x40, 0x80} { // save_any_reg: x, d, q, with and without a pair
		f.Add([]byte{16, 0, 0, 8, 0xe7, 0x13, kind, 0xe4}, uint32(0), uint32(32), uint64(0x7000_0400), true)
		f.Add([]byte{16, 0, 0, 8, 0xe7, 0x73, kind | 2, 0xe4}, uint32(0),
			uint32(32), uint64(0x7000_0400), true)
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
		mods := module.NewTable(generations.Add(1),
			[]module.Module{{Start: base, End: base + 1<<32, Bias: base, PE: im}}, nil)
		u.SetTable(mods)
		plain.SetTable(mods)
		regs := arm64.Registers{PC: base + fn + uint64(into&0xffffc),
			Sp: stack + 512, Known: context.ARM64All}
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
