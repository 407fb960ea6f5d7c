package outside

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/threadprog"
)

// patchedMemory is the memory of a thread whose stack has a return address that the runtime replaced. If
// onRead is set, a read of the runtime's Thread makes the thread run on.
type patchedMemory struct {
	stub, slot, ra uint64
	thread         uint64
	reads          []uint64 // addresses, in order
	onRead         func()
}

func (m *patchedMemory) ReadAt(b []byte, addr uint64) bool { return m.ReadSome(b, addr) == len(b) }

func (m *patchedMemory) ReadSome(b []byte, addr uint64) int {
	m.reads = append(m.reads, addr)
	clear(b)
	if addr == m.thread {
		binary.LittleEndian.PutUint64(b[152:], m.ra)
		binary.LittleEndian.PutUint64(b[160:], m.slot)
		if m.onRead != nil {
			m.onRead()
		}
		return len(b)
	}
	for i := 0; i+8 <= len(b); i += 8 {
		if addr+uint64(i) == m.slot {
			binary.LittleEndian.PutUint64(b[i:], m.stub)
		}
	}
	return len(b)
}

// The engine reads the runtime's Thread after the stack, and discards the copy if the thread has run
// meanwhile. It does not read the Thread if no return address on the stack is replaced.
func TestThreadIsReadWithItsStack(t *testing.T) {
	const stub, slot, ra, thread = 0x7000_1003, 0x5000_0f08, 0x7100_0010, 0x6000_0000
	for _, c := range []struct {
		name           string
		slot           uint64
		runs           bool
		wantOK, wantRA bool
	}{
		{"the thread stays", slot, false, true, true},
		{"the thread runs while its Thread is read", slot, true, false, false},
		{"no return address is replaced", 0, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid, run := threadprog.Echo(t)
			mem := &patchedMemory{stub: stub, slot: c.slot, ra: ra, thread: thread}
			if c.runs {
				mem.onRead = func() { run(); threadprog.Settle(t, pid, 0) }
			}
			e := &Engine{Table: threads.NewTable(pid)}
			defer e.Kernel.Close(nil)
			e.Target, e.Walker = &target.Process{Mem: mem}, &walk.Walker{HijackStub: stub}
			k := &threads.Task{TID: uint32(pid), Stat: -1, Place: -1, Slot: -1, Low: 0x5000_0000,
				High: 0x5000_2000, Thread: thread}
			defer e.Kernel.Shut(k)
			before, ok1 := e.Kernel.Counters(k)
			w, sp, ip := e.Kernel.WhereIs(k)
			if !ok1 || w != threads.Blocked {
				t.Skip("SKIPPED-CHECK: the kernel does not say where the thread is blocked")
			}
			k.Low, k.High = sp&^0xfff, sp&^0xfff+0x2000
			if c.slot != 0 {
				mem.slot = (sp + 64) &^ 7
			}
			got, ok := e.copyBlocked(k, sp, ip, before)
			must.Equal(t, ok, c.wantOK, "ok")
			expect.True(t, len(e.bytes) <= walk.FirstStack,
				"%d bytes for a stack of %d", len(e.bytes), k.High-k.Low)
			if !ok {
				return
			}
			if len(got.Extra) != 0 != c.wantRA ||
				c.wantRA && binary.LittleEndian.Uint64(got.Extra[152:]) != ra {
				t.Errorf("%d bytes of the Thread after %#x", len(got.Extra), mem.reads)
			}
		})
	}
}

func TestPatched(t *testing.T) {
	const stub = 0x7fff_1234_5003
	w := &walk.Walker{HijackStub: stub}
	at := func(addr uint64, word int) *memory.Run {
		b := make([]byte, 67)
		if word >= 0 {
			binary.LittleEndian.PutUint64(b[word:], stub)
		}
		return &memory.Run{Addr: addr, Data: b}
	}
	for _, c := range []struct {
		name string
		run  *memory.Run
		want bool
	}{
		{"first word", at(0x1000, 0), true}, {"last whole word", at(0x1000, 56), true},
		{"beside a word", at(0x1000, 12), false},
		{"a copy that begins within a word", at(0x1003, 5), true}, {"none", at(0x1000, -1), false},
		{"nothing", &memory.Run{}, false},
		{"less than a word", &memory.Run{Addr: 0x1005, Data: []byte{1, 2}}, false},
	} {
		expect.Equal(t, w.Patched(c.run), c.want, c.name)
	}
	expect.True(t, !(&walk.Walker{}).Patched(at(0x1000, 0)) &&
		!(&walk.Walker{}).Patched(&memory.Run{Addr: 0x1000, Data: make([]byte, 64)}),
		"patched though the stub is not known")
}
