package sampler

import (
	"bytes"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// stackMemory is a process's memory at one address. It may change between two reads.
type stackMemory struct {
	addr    uint64
	data    []byte
	reads   int
	changes func(reads int)
}

func (m *stackMemory) ReadAt(b []byte, addr uint64) bool { return m.ReadSome(b, addr) == len(b) }

func (m *stackMemory) ReadSome(b []byte, addr uint64) int {
	if m.reads++; m.changes != nil {
		m.changes(m.reads)
	}
	if addr < m.addr || addr >= m.addr+uint64(len(m.data)) {
		return 0
	}
	return copy(b, m.data[addr-m.addr:])
}

const (
	restBase   = 0x10000
	restCopied = 8 << 10
	restLast   = restCopied - 48 // offset of the last frame
)

// cutAt returns a truncated copy of the memory.
func (m *stackMemory) cutAt(size int) walk.Capture {
	return walk.Capture{Stack: memory.Run{Addr: m.addr, Data: bytes.Clone(m.data[:size])}, Cut: true}
}

func restWorld(size int) (*Base, *stackMemory) {
	now := make([]byte, size)
	for i := range now {
		now[i] = byte(i*7 + i>>8)
	}
	m := &stackMemory{addr: restBase, data: now}
	e := &Base{Target: &target.Process{Mem: m}, Walker: walk.New(context.ArchAMD64)}
	e.Walker.Regs.Arch = context.ArchAMD64
	e.Walker.Regs.SetSP(restBase + restLast)
	return e, m
}

// The rest of a stack is added only if the end of the copy is still part of the stack and unchanged.
func TestAddRest(t *testing.T) {
	const base, copied, last = restBase, restCopied, restLast
	for _, c := range []struct {
		name   string
		copied int
		change int    // this byte of the copy differs from the current memory; -1: none
		size   int    // readable bytes
		frame  uint64 // stack pointer of the last frame
		sp     uint64 // current stack pointer of the thread; 0: unknown
		want   int
	}{
		{"the rest", copied, -1, 100 << 10, base + last, base, 100 << 10},
		{"a thread that runs", copied, -1, 100 << 10, base + last, 0, 100 << 10},
		{"a change below the last frame", copied, last - 9, 100 << 10, base + last, base, 100 << 10},
		{"another return address to the last frame", copied, last - 8, 100 << 10, base + last, base, copied},
		{"a change in the last byte", copied, copied - 1, 100 << 10, base + last, base, copied},
		{"deeper calls", copied, 0, 100 << 10, base + last, base - 0x8000, 100 << 10},
		{"at the last call", copied, -1, 100 << 10, base + last, base + last - 8, 100 << 10},
		{"returned to the last frame", copied, -1, 100 << 10, base + last, base + last, copied},
		{"a large frame", copied, copied - restOverlap - 1, 100 << 10, base, base, 100 << 10},
		{"a change in a large frame", copied, copied - restOverlap, 100 << 10, base, base, copied},
		{"no more", copied, -1, copied, base + last, base, copied},
		{"unmapped", copied, -1, copied - 100, base + last, base, copied},
		{"too small a copy", restOverlap - 1, -1, 100 << 10, base, base, restOverlap - 1},
		{"a frame above the copy", last - 8, -1, 100 << 10, base + last, base, last - 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, m := restWorld(100 << 10)
			data := bytes.Clone(m.data[:c.copied])
			if c.change >= 0 {
				data[c.change]++
			}
			want := append(bytes.Clone(data), m.data[c.copied:]...)[:c.want]
			m.data = m.data[:c.size]
			e.Walker.Regs.SetSP(c.frame)
			k := walk.Capture{Stack: memory.Run{Addr: base, Data: data}, Cut: true}
			got := e.AddRest(&k, c.sp)
			expect.True(t, got == (c.want > c.copied) && bytes.Equal(k.Stack.Data, want),
				"%v, %d bytes, want %d", got, len(k.Stack.Data), len(want))
			expect.Equal(t, k.Cut, !got, "the copy is truncated")
		})
	}
}

// A thread that returns while the rest is read may have replaced it.
func TestRestChanges(t *testing.T) {
	for at := 1; at <= 3; at++ {
		e, m := restWorld(100 << 10)
		k := m.cutAt(restCopied)
		m.changes = func(reads int) {
			if reads == at {
				m.data[restCopied-1]++
			}
		}
		expect.True(t, !e.AddRest(&k, 0) && len(k.Stack.Data) == restCopied && k.Cut,
			"a change before read %d: %d bytes", at, len(k.Stack.Data))
	}
}

// A large stack is read in steps up to a limit, or not at all if its end is known to be beyond the limit.
func TestRestIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		high uint64 // offset of the stack's end; 0: unknown
		want []int  // bytes after each call
		cut  bool
	}{
		{"unknown end", 0, []int{restCopied<<1 + 4<<20, restCopied<<2 + 12<<20, restCopied<<3 + 28<<20,
			restCopied<<4 + 60<<20, MaxStack}, true},
		{"near end", 3 << 20, []int{3 << 20}, false},
		{"far end", 40 << 20, []int{restCopied<<1 + 4<<20, restCopied<<2 + 12<<20, restCopied<<3 + 28<<20,
			40 << 20}, false},
		{"beyond the limit", MaxStack + 1<<20, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, m := restWorld(MaxStack + 2<<20)
			k := m.cutAt(restCopied)
			if c.high > 0 {
				k.High = restBase + c.high
			}
			var got []int
			for k.Cut && e.AddRest(&k, 0) {
				got = append(got, len(k.Stack.Data))
				e.Walker.Regs.SetSP(restBase + uint64(len(k.Stack.Data)) - 48)
			}
			if len(got) == len(c.want) {
				for i := range got {
					expect.Equal(t, got[i], min(c.want[i], MaxStack), "step %d", i)
				}
			} else {
				t.Errorf("steps %d, want %d", got, c.want)
			}
			expect.True(t, k.Cut == c.cut && bytes.Equal(k.Stack.Data, m.data[:len(k.Stack.Data)]),
				"other bytes, or Cut %v", k.Cut)
		})
	}
}

// Rests take a quarter of the time at most, with a second in advance.
func TestRestCredit(t *testing.T) {
	var r rest
	now := time.Unix(1000, 0)
	expect.True(t, r.earn(now) && r.credit == restCredit, "credit %v at first", r.credit)
	r.credit = -time.Millisecond
	expect.True(t, !r.earn(now.Add(4*time.Millisecond)), "credit %v", r.credit)
	expect.True(t, r.earn(now.Add(5*time.Millisecond)) && r.credit == time.Millisecond/4, "credit %v",
		r.credit)
	r.earn(now.Add(time.Hour))
	expect.Equal(t, r.credit, restCredit)
}
