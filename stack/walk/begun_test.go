package walk

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// A handler whose return address is still on top of the stack has not started, and is not part of the
// thread's work.
func TestBegun(t *testing.T) {
	const stack, restorer, handler, code = 0x7000, 0x1000, 0x2000, 0x3000
	entered := func(sp uint64) []merge.Frame {
		return []merge.Frame{{IP: handler, SP: sp, Exact: true}, {IP: restorer, SP: sp + 8, Kind: unwind.KindSignal}}
	}
	below := merge.Frame{IP: code, SP: stack + 32, Exact: true, Kind: unwind.KindManaged}
	changed := func(frames []merge.Frame, change func(f *merge.Frame)) []merge.Frame {
		change(&frames[0])
		return append(frames, below)
	}
	for _, c := range []struct {
		name   string
		frames []merge.Frame
		left   int
	}{
		{"at its first instruction", append(entered(stack), below), 1},
		{"one on another", append(append(entered(stack), entered(stack+16)...), below), 1},
		{"that has pushed a register", append(entered(stack+8), below), 3},
		{"that has called", changed(entered(stack), func(f *merge.Frame) { f.Exact = false }), 3},
		{"of managed code", changed(entered(stack), func(f *merge.Frame) { f.Kind = unwind.KindManaged }), 3},
		{"beyond the copy", append(entered(stack+0x1000), below), 3},
		{"with nothing below", entered(stack), 2},
		{"no signal", []merge.Frame{{IP: handler, SP: stack, Exact: true}, {IP: restorer, SP: stack + 8}, below}, 3},
	} {
		w := New(context.ArchAMD64)
		var data []byte
		for _, word := range []uint64{restorer, 7, restorer, 7} {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		w.mem.Reset(stack, data)
		got := w.dropUnstarted(c.frames)
		if len(got) != c.left || int(w.SkippedHandlers) != (len(c.frames)-c.left)/2 || got[len(got)-1] != c.frames[len(c.frames)-1] {
			t.Errorf("a handler %s: %d frames are left, want %d; %d counted", c.name, len(got), c.left, w.SkippedHandlers)
		}
	}
}
