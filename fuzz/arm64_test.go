package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// FuzzXdata reads any bytes as an .xdata record and looks at any instruction:
// no panic, sizes inside the record, codes that are a part of the record's.
func FuzzXdata(f *testing.F) {
	for _, seed := range [][]byte{
		{0x19, 0, 0x50, 0x10, 0x17, 0, 0xc0, 0, 0xe1, 0x9b, 0xe4, 0x9b, 0xe3, 0xe4, 0, 0, 0xb0, 4, 0x0f, 0},
		{7, 0, 0x40, 8, 5, 0, 0x80, 0, 0x81, 0xe4, 0x81, 0xe4},
		{0x0b, 0, 0, 0x20, 0xe6, 0xd9, 4, 0xe6, 0xda, 7, 0xe6, 0xca, 4, 0xe6,
			0xcd, 7, 0xe6, 0x24, 0xe4, 0xe3},
		{0x2a, 2, 0x50, 0x38, 0x15, 0, 0, 3, 1, 0xe1, 0xd1, 0x88, 0xc9, 6, 0xc8, 0x84, 0xc8, 2, 0x89, 0xe4,
			0xc0, 0x94, 1, 0xd1, 0x88, 0xc9, 6, 0xc8, 0x84, 0xc8, 2, 0x89, 0xe4,
			0xe3, 0xe3, 0xe3, 0, 0, 0, 0},
		{4, 0, 0, 8, 0xec, 1, 1, 0xe4},
		{0x14, 0, 0, 0, 1, 0, 1, 0, 0x10, 0, 0x40, 0, 0xe1, 0x81, 0xe4, 0xe4},
	} {
		f.Add(seed, uint32(4))
	}
	for _, file := range []string{"arm64-native.jsonl.gz", "arm64-winetest.jsonl.gz", "malformed.jsonl.gz"} {
		eachRecorded(f, file, 1, func(r recorded) { f.Add(r.info, r.into) })
	}
	f.Fuzz(func(t *testing.T, b []byte, offset uint32) {
		b = b[:len(b):len(b)]
		n, fault := pearm64.XdataSize(b)
		if !fault.OK() {
			return
		}
		i, fault := pearm64.DecodeXdata(b)
		must.True(t, fault.OK() == (n <= len(b)), "size %d of %d bytes, %v", n, len(b), fault)
		if fault.OK() {
			checkInfo(t, &i, offset)
		}
	})
}

// FuzzPacked expands any packed word.
func FuzzPacked(f *testing.F) {
	for _, w := range []uint32{0x7486085, 0x748603a, 0x02a20021, 0x03910039,
		0x11620029, 0x040b0101, 3, 0xffffffff} {
		f.Add(w, uint32(16))
	}
	for _, from := range []vectors{{"arm64-native.jsonl.gz", 4}, {"arm64-packedx.jsonl.gz", 4},
		{"arm64-winetest.jsonl.gz", 1}, {"malformed.jsonl.gz", 1}} {
		eachRecorded(f, from.file, from.every, func(r recorded) {
			if r.word&3 != 0 {
				f.Add(r.word, r.into)
			}
		})
	}
	f.Fuzz(func(t *testing.T, word, offset uint32) {
		var buf pearm64.Buffer
		i, fault := pearm64.DecodePackedInfo(word, &buf)
		if !fault.OK() {
			return
		}
		if _, fault := i.Count(0); !fault.OK() {
			t.Fatalf("%#x expands to %x: %v", word, i.Codes, fault)
		}
		checkInfo(t, &i, offset)
	})
}

func checkInfo(t *testing.T, i *pearm64.Info, offset uint32) {
	for k := range i.Scopes() {
		i.Scope(k)
	}
	sound := i.Check().OK()
	codes, _, fault := i.At(offset)
	if sound && offset < i.Length && !fault.OK() {
		t.Fatalf("checked, but at %#x: %v", offset, fault)
	}
	if !fault.OK() {
		return
	}
	for len(codes) > 0 {
		c, reason := pearm64.DecodeCode(codes)
		if reason == pearm64.Truncated || c.Op == pearm64.End {
			return
		}
		must.True(t, c.Size != 0, "a code of no bytes")
		codes = codes[c.Size:]
	}
}

// FuzzWalkARM64 walks any stack by any call frame information. For every input:
//
//   - no panic, no allocation, and at most walkSteps steps
//   - a reason at the end of the walk
//   - a stack pointer that only rises outside signal frames
//   - the same result with and without the rule cache
func FuzzWalkARM64(f *testing.F) {
	seedWalkARM64(f)
	fuzzFrames(f, context.ArchARM64)
}

// seedWalkARM64 gives a CIE with one FDE over the whole module for several
// programs, and stacks with plausible words: frame records, and a signal frame
// of the kernel with its trampoline in front.
func seedWalkARM64(f *testing.F) {
	var stack []byte
	for i := range uint64(256) {
		word := [4]uint64{walkStack + 8*i + 32, walkBias + 0x100 + 4*i,
			walkJIT + 4*i, 0xd4000001d2801168}[i&3]
		stack = binary.LittleEndian.AppendUint64(stack, word)
	}
	for _, s := range sorted(seedCFI(f)) {
		if s.Arch == context.ArchARM64 && s.EHFrame != nil {
			eachWalkSeed(s, 3, func(pc uint64) { f.Add(s.EHFrame, stack, pc, uint64(walkStack+64), false) })
		}
	}
	eachFrames([]byte{1, 0x78, 30, 1, 0, 0x0c, 31, 0}, [][]byte{
		nil,
		{0x0e, 32, 0x9d, 4, 0x9e, 3},
		{0x0c, 29, 16, 0x9d, 2, 0x9e, 1},
		{0x2d, 0x0e, 16, 0x9d, 2, 0x9e, 1},
		{0x0f, 3, 0x8f, 0x10, 0x06, 0x9e, 1},
		{0x10, 19, 2, 0x23, 8, 0x9e, 1, 0x0e, 16},
		{0x07, 30},
		{0x05, 72, 2, 0x9e, 1, 0x0e, 16},
	}, func(frames []byte) {
		f.Add(frames, stack, uint64(walkBias+0x10), uint64(walkStack+64), true)
		f.Add(frames, stack, uint64(walkStack+24), uint64(walkStack+64), true)
		f.Add(frames, stack, uint64(walkBias+1<<20), uint64(walkStack+64), true)
	})
}
