package symbol

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
)

// TestExecutable: overlapping segments are joined, so that a symbol costs the same however many segments an
// image has.
func TestExecutable(t *testing.T) {
	segment := func(flags uint32, addr, size uint64) elfasm.Segment {
		return elfasm.Segment{Type: 1, Flags: flags, Addr: addr, FileSize: min(size, 1), MemSize: size}
	}
	file := elfasm.File{Segments: []elfasm.Segment{
		segment(5, 0x9000, 0x100), segment(4, 0x5000, 0x100), segment(5, 0x1000, 0x800), segment(5, 0x1800, 0x800),
	}}
	for i := range uint64(100) {
		file.Segments = append(file.Segments, segment(5, 0x1000+i, 0x800))
	}
	f, err := elf.New(file.Bytes(), "segments")
	if err != nil {
		t.Fatal(err)
	}
	ranges := executable(f)
	if want := []memory.Range{{Start: 0x1000, End: 0x2000}, {Start: 0x9000, End: 0x9100}}; !slices.Equal(ranges, want) {
		t.Fatalf("%x", ranges)
	}
	for addr, want := range map[uint64]bool{0xfff: false, 0x1000: true, 0x1fff: true, 0x2000: false, 0x5000: false, 0x9000: true, 0x90ff: true, 0x9100: false} {
		if got := isCode(ranges, &elf.Symbol{Value: addr, Type: sttFunc}); got != want {
			t.Errorf("%#x: %v", addr, got)
		}
	}
}
