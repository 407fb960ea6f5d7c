package arm64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/pe/rva"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestFindInTable(t *testing.T) {
	img := make([]byte, 0x3008)
	put := func(at int, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(img[at+4*i:], w)
		}
	}
	put(0x2000, 4|1<<21|1<<22|1<<27, 0xe4e481e1) // 16 bytes long, E
	put(0x3000, 8|1<<21|1<<22|1<<27, 0xe4e481e1) // ends with the image
	pdata := make([]byte, 5*8)
	for i, e := range [5][2]uint32{{0x1000, 0x2000}, {0x1010, 1 | 4<<2}, {0x1100, 0x3000},
		{0x1200, 0x3010}, {0x1300, 3}} {
		binary.LittleEndian.PutUint32(pdata[8*i:], e[0])
		binary.LittleEndian.PutUint32(pdata[8*i+4:], e[1])
	}
	table := New(pdata, rva.Sort([]rva.Block{{RVA: 0, Data: img}}))
	for _, c := range []struct {
		name  string
		rva   uint32
		found bool
		begin uint32
		want  Reason
	}{
		{"before all", 0xfff, false, 0, OK},
		{"first", 0x1000, true, 0x1000, OK},
		{"its last byte", 0x100f, true, 0x1000, OK},
		{"packed", 0x1010, true, 0x1010, OK},
		{"behind it", 0x1020, false, 0x1010, OK},
		{"record at the image's end", 0x1104, true, 0x1100, OK},
		{"record past the image's end", 0x1204, true, 0x1200, BadRecord},
		{"reserved flag", 0x1304, true, 0x1300, BadFlag},
	} {
		var buf Buffer
		info := Info{Length: 4, Codes: buf[:1]} // of the look-up before: nothing of it stays
		begin, found, fault := table.Find(c.rva, &buf, &info)
		if begin == 0 && info.Codes != nil {
			t.Errorf("%s: codes of another function", c.name)
		}
		expect.True(t, found == c.found && begin == c.begin && fault.Reason == c.want,
			"%s: found %v at %#x, %v, length %d", c.name, found, begin, fault.Reason, info.Length)
	}
}

func newTable(pdata []byte, blocks []rva.Block) *Table {
	t := New(pdata, rva.Sort(blocks))
	return &t
}

func TestSort(t *testing.T) {
	var b []byte
	for _, w := range []uint32{0x30, 1, 0x10, 2, 0x20, 3} {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	f := newTable(b, nil)
	for rva, want := range map[uint32]uint32{0x10: 2, 0x2f: 3, 0x30: 1} {
		fn := f.Entry(f.Index(rva))
		expect.True(t, fn.Data == want, "%#x: %+v", rva, fn)
	}
	expect.Equal(t, b[0], 0x30, "the image's own bytes were sorted")
}

// TestFind finds a function by its address.
func TestFind(t *testing.T) {
	le := binary.LittleEndian
	var dir, x [8]byte
	le.PutUint32(dir[:], 0x1000)
	le.PutUint32(dir[4:], 0x2000)
	le.PutUint32(x[:], 4|1<<21|1<<22|1<<27) // 16 bytes long, E
	le.PutUint32(x[4:], 0xe4e481e1)
	f := newTable(dir[:], []rva.Block{{RVA: 0x2000, Data: x[:]}})
	var buf Buffer
	var info Info
	begin, found, fault := f.Find(0x100c, &buf, &info)
	expect.True(t, found && fault.OK() && begin == 0x1000 && info.Length == 16,
		"%+v %#x %v %v", info, begin, found, fault)
	_, found, _ = f.Find(0x1010, &buf, &info)
	expect.True(t, !found, "found behind the function")
}

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
		{"home area behind two registers", packedWord(0, 2, 1, 0, 80),
			[]byte{0xe3, 0xe3, 0xe3, 0xe3, 0x2a, 0xe4}, OK},
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
			must.Equal(t, fault.Reason, c.reason)
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
	n, fault := i.Count(0)
	expect.True(t, n == 2 && fault.OK(), "%d instructions, %v", n, fault)
}
