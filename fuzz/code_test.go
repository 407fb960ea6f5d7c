package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

const codeAt = 0x100

// codeModule is a module of an image whose code is at codeAt, without call frame information.
func codeModule(t *testing.T, machine uint16, code []byte) module.Module {
	file := must.Get(elf.New(elfasm.Code(machine, codeAt, code), "code"))(t)
	return module.Module{Start: walkBias,
		End: walkBias + codeAt + uint64(len(code)), Bias: walkBias, ELF: file}
}

// FuzzCodeAMD64 walks out of any code that has no unwind data: by its bytes,
// where they prove something, else by the frame pointer. The invariants are
// those of FuzzWalkAMD64.
func FuzzCodeAMD64(f *testing.F) {
	stack := plausibleStack()
	for _, code := range [][]byte{
		{0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3},
		{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},                            // the signal trampoline
		{0xff, 0x35, 2, 0, 0, 0, 0xff, 0x25, 4, 0, 0, 0},                         // a linkage table's head
		{0xff, 0x25, 2, 0, 0, 0, 0x68, 3, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff}, // and an entry
		{0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3},
		{0xeb, 0xfe}, {0xe9, 0xfb, 0xff, 0xff, 0xff}, {0x75, 0xfe, 0xc9, 0xc3},
	} {
		f.Add(code, stack, uint64(walkBias+codeAt), uint64(walkStack+64), false)
		f.Add(code, stack, uint64(walkBias+codeAt+2), uint64(walkStack+64), true)
	}
	fuzzCode(f, context.ArchAMD64, elfasm.AMD64, "amd64-native.jsonl.gz")
}

// fuzzCode walks out of any code of an architecture, and of that in a file of vectors.
func fuzzCode(f *testing.F, arch context.Arch, machine uint16, file string) {
	eachRecorded(f, file, 8, func(r recorded) {
		f.Add(r.code, plausibleStack(), uint64(walkBias+codeAt)+uint64(r.into), uint64(walkStack+64), false)
	})
	w := newWalkers()
	f.Fuzz(func(t *testing.T, code, stack []byte, ip, fp uint64, guess bool) {
		if len(code) > 1<<14 || len(stack) > 1<<16 {
			return
		}
		mods := w.table(codeModule(t, machine, code))
		mem := memory.New(memory.Run{Addr: walkStack, Data: stack[:len(stack):len(stack)]})
		w.check(t, mods, startOf(arch, ip, fp, walkBias+codeAt+4, stack), mem, guess)
	})
}

// FuzzCodeARM64 is FuzzCodeAMD64 for ARM64.
func FuzzCodeARM64(f *testing.F) {
	stack := plausibleStack()
	for _, words := range [][]uint32{
		{0xa9bf7bfd, 0x910003fd, 0xa8c17bfd, 0xd65f03c0},
		{0xd2801168, 0xd4000001},                         // the signal trampoline
		{0xa9bf7bf0, 0x90000110, 0xf9400211, 0xd61f0220}, // a linkage table's head
		{0xd503245f, 0x90000110, 0xf9400211, 0x91000210, 0xd61f0220},
		{0x14000000}, {0x17ffffff}, {0xd503233f, 0xd50323bf, 0xd65f03c0},
	} {
		var code []byte
		for _, w := range words {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		f.Add(code, stack, uint64(walkBias+codeAt), uint64(walkStack+64), false)
		f.Add(code, stack, uint64(walkBias+codeAt+4), uint64(walkStack+64), true)
	}
	fuzzCode(f, context.ArchARM64, elfasm.ARM64, "arm64-native.jsonl.gz")
}
