package stopped

import (
	"bytes"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/walk"
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
	const base, copied = 0x10000, 8 << 10
	now := make([]byte, 100<<10)
	for i := range now {
		now[i] = byte(i * 7)
	}
	for _, c := range []struct {
		name   string
		copied int
		change int    // this byte of the copy differs from the current memory; -1: none
		size   int    // readable bytes
		sp     uint64 // current stack pointer of the thread
		want   int
	}{
		{"the rest", copied, -1, len(now), base, len(now)},
		{"a change below the end", copied, 100, len(now), base, len(now)},
		{"a change in the end", copied, copied - restOverlap, len(now), base, copied},
		{"a change in the last byte", copied, copied - 1, len(now), base, copied},
		{"deeper calls", copied, 0, len(now), base - 0x8000, len(now)},
		{"returned to the end", copied, -1, len(now), base + copied - restOverlap, len(now)},
		{"returned past the end", copied, -1, len(now), base + copied - restOverlap + 8, copied},
		{"no more", copied, -1, copied, base, copied},
		{"unmapped", copied, -1, copied - 100, base, copied},
		{"too small a copy", restOverlap - 1, -1, len(now), base, restOverlap - 1},
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
			if got := e.addRest(&k, c.sp); got != (c.want > c.copied) || !bytes.Equal(k.Stack.Data, want) {
				t.Errorf("%v, %d bytes, want %d", got, len(k.Stack.Data), len(want))
			}
		})
	}
}
