package arm64

import (
	"bytes"
	"testing"
)

// packedWord makes a packed word of a function of 64 instructions.
func packedWord(regF, regI, h, cr, frame uint32) uint32 {
	return FlagPacked | 64<<2 | regF<<13 | regI<<16 | h<<20 | cr<<21 | frame/16<<23
}

// TestPackedBounds: the canonical prolog at the sizes where its form changes.
// Codes are in the order in which they undo.
func TestPackedBounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		word   uint32
		prolog []byte
		reason Reason
	}{
		{"local of 496", packedWord(0, 0, 0, 1, 512), []byte{0x1f, 0xd5, 0x61, 0xe4}, OK},
		{"local of 512", packedWord(0, 0, 0, 1, 528), []byte{0xc0, 0x20, 0xd5, 0x61, 0xe4}, OK},
		{"local of 512, chained", packedWord(0, 0, 0, 3, 512), []byte{0xe1, 0xbf, 0xe4}, OK},
		{"local of 528, chained", packedWord(0, 0, 0, 3, 528), []byte{0xe1, 0x40, 0xc0, 0x21, 0xe4}, OK},
		{"local of 4080", packedWord(0, 0, 0, 1, 4096), []byte{0xc0, 0xff, 0xd5, 0x61, 0xe4}, OK},
		{"local of 4096", packedWord(0, 0, 0, 1, 4112), []byte{0x01, 0xc0, 0xff, 0xd5, 0x61, 0xe4}, OK},
		{"home area alone", packedWord(0, 0, 1, 0, 64), []byte{0xe3, 0xe3, 0xe3, 0x04, 0xe4}, OK},
		{"home area behind two registers", packedWord(0, 2, 1, 0, 80), []byte{0xe3, 0xe3, 0xe3, 0xe3, 0x2a, 0xe4}, OK},
		{"one d register counts as two", packedWord(1, 0, 0, 0, 16), []byte{0xda, 0x01, 0xe4}, OK},
		{"signed", packedWord(0, 0, 0, 2, 16), []byte{0xe1, 0x81, 0xfc, 0xe4}, OK},
		{"chained, room for nothing else", packedWord(0, 2, 0, 3, 32), []byte{0xe1, 0x81, 0x22, 0xe4}, OK},
		{"chained, no room for the chain", packedWord(0, 2, 0, 3, 16), nil, BadFrameSize},
		{"less than is saved", packedWord(0, 4, 0, 0, 16), nil, BadFrameSize},
		{"registers past x28", packedWord(0, 11, 0, 0, 96), nil, BadRegI},
	} {
		t.Run(c.name, func(t *testing.T) {
			var buf Buffer
			i, fault := DecodePackedInfo(c.word, &buf)
			if fault.Reason != c.reason {
				t.Fatalf("%v, want %v", fault.Reason, c.reason)
			}
			if c.reason == OK && !bytes.HasPrefix(i.Codes, c.prolog) {
				t.Errorf("% x, want % x", i.Codes, c.prolog)
			}
		})
	}
}

// TestCountWithoutInstruction: machine frames, contexts, and similar codes represent
// no instruction of a prolog.
func TestCountWithoutInstruction(t *testing.T) {
	i := Info{Codes: []byte{0xe9, 0xea, 0xeb, 0xec, 0x01, 0xe3, 0xe4}}
	if n, fault := i.Count(0); n != 2 || !fault.OK() {
		t.Errorf("%d instructions, %v", n, fault)
	}
}
