package stopped

import (
	"bytes"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// stackMemory is a process with a stack at addr.
type stackMemory struct {
	addr uint64
	data []byte
}

func (m *stackMemory) ReadAt(b []byte, addr uint64) bool { return m.ReadSome(b, addr) == len(b) }

func (m *stackMemory) ReadSome(b []byte, addr uint64) int {
	if addr < m.addr || addr >= m.addr+uint64(len(m.data)) {
		return 0
	}
	return copy(b, m.data[addr-m.addr:])
}

// The rest of a stack is used only if the end of the copy is still part of the thread's stack.
func TestAddRest(t *testing.T) {
	const base, copied, last = 0x10000, 8 << 10, 8<<10 - 48
	const frame = base + last
	now := make([]byte, 100<<10)
	for i := range now {
		now[i] = byte(i * 7)
	}
	for _, c := range []struct {
		name   string
		copied int
		change int    // this byte of the copy differs from the current memory; -1: none
		size   int    // readable bytes
		frame  uint64 // stack pointer of the last frame
		sp     uint64 // current stack pointer of the thread
		want   int
	}{
		{"the rest", copied, -1, len(now), frame, base, len(now)},
		{"a change below the last frame", copied, last - 9, len(now), frame, base, len(now)},
		{"another return address to the last frame", copied, last - 8, len(now), frame, base, copied},
		{"a change in the last byte", copied, copied - 1, len(now), frame, base, copied},
		{"deeper calls", copied, 0, len(now), frame, base - 0x8000, len(now)},
		{"at the last call", copied, -1, len(now), frame, frame - 8, len(now)},
		{"returned to the last frame", copied, -1, len(now), frame, frame, copied},
		{"a large frame", copied, copied - restOverlap - 1, len(now), base, base, len(now)},
		{"a change in a large frame", copied, copied - restOverlap, len(now), base, base, copied},
		{"no more", copied, -1, copied, frame, base, copied},
		{"unmapped", copied, -1, copied - 100, frame, base, copied},
		{"too small a copy", restOverlap - 1, -1, len(now), base, base, restOverlap - 1},
		{"a frame above the copy", last - 8, -1, len(now), frame, base, last - 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(now[:c.copied])
			if c.change >= 0 {
				data[c.change]++
			}
			want := append(bytes.Clone(data), now[c.copied:]...)[:c.want]
			e := &Stopper{}
			e.Target = &target.Process{Mem: &stackMemory{base, now[:c.size]}}
			k := walk.Capture{Stack: memory.Run{Addr: base, Data: data}, Cut: true}
			got := e.addRest(&k, c.frame, c.sp)
			expect.True(t, got == (c.want > c.copied) && bytes.Equal(k.Stack.Data, want),
				"%v, %d bytes, want %d", got, len(k.Stack.Data), len(want))
		})
	}
}
