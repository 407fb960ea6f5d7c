package probe

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// slotFile is a file of one process, without a probe.
func slotFile() *File {
	f := &File{pid: os.Getpid(), used: map[uint32]int32{}, slots: make([]slot, Slots)}
	f.h = &header{tag: 0x80001234, relay: 41}
	return f
}

// The slot of an ended thread is free once its timer has been deleted.
func TestSlotWithTimer(t *testing.T) {
	f := slotFile()
	i := must.Get(f.Slot(77))(t)
	f.slots[i].timer = 5
	f.Free(77)
	expect.Equal(t, f.slots[i].tid, 77, "the thread of a slot with a timer")
	f.Reap()
	expect.Equal(t, f.h.reap[0], uint32(i)+1, "the slot to reap")
	f.slots[i].timer, f.h.reap[0] = 0, 0
	f.Reap()
	expect.Equal(t, f.slots[i].tid, 0, "the thread of a slot without a timer")
}

// shifted are the numbers of a process whose threads have lower ones in its own pid namespace.
type shifted struct{}

func (shifted) Refresh()                          {}
func (shifted) Inner(outer uint32) (uint32, bool) { return outer - 1000, outer > 1000 }
func (shifted) Outer(inner uint32) (uint32, bool) { return inner + 1000, true }

// The probe writes the target's own number of its thread.
func TestHelperInNamespace(t *testing.T) {
	f := slotFile()
	f.SetNumbers(shifted{})
	expect.Equal(t, f.Helper(), 0, "no thread")
	f.h.helper = 7
	expect.Equal(t, f.Helper(), 1007, "its thread")
}

// ended is a process whose threads have ended: no number is found. It counts the searches.
type ended struct {
	shifted
	searches *int
}

func (e ended) Refresh()                  { *e.searches++ }
func (ended) Outer(uint32) (uint32, bool) { return 0, false }

// The thread that held a lock may have ended. Its number is looked for once, and again after a while: another
// thread may get the number.
func TestHolderHasEnded(t *testing.T) {
	f, searches := slotFile(), 0
	f.SetNumbers(ended{searches: &searches})
	for range 3 {
		for tid := range uint64(50) {
			expect.Equal(t, f.Holder(tid), 0, "a thread that has ended")
		}
	}
	expect.Equal(t, searches, 49, "searches for 49 numbers") // 0 is no number
	f.unknown[7] -= uint64(unknownFor)
	for range 3 {
		f.Holder(7)
	}
	expect.Equal(t, searches, 50, "searches after a while")
}

// An offset of a time namespace has two parts, seconds and nanoseconds. In negative offsets, only the seconds
// are negative.
func TestMonotonic(t *testing.T) {
	dir := t.TempDir()
	expect.Equal(t, monotonic(dir), 0, "a kernel without time namespaces")
	must.Do(t, os.WriteFile(filepath.Join(dir, "timens_offsets"),
		[]byte("monotonic          -2 500000000\nboottime            7         0\n"), 0o600))
	expect.Equal(t, int64(monotonic(dir)), -1_500_000_000, "nanoseconds")
}

// The tool writes its heartbeat in the target's time, and converts the times of the target's waits to its
// own time.
func TestAhead(t *testing.T) {
	f, ahead := slotFile(), uint64(1<<50)
	f.ahead, f.waits = ahead, []waiter{{tid: 7, depth: 1}}
	f.waits[0].open[0].since = ahead + 5
	f.Beat()
	expect.True(t, f.h.heartbeat >= ahead && f.h.heartbeat-ahead <= Clock(), "heartbeat %d", f.h.heartbeat)
	f.Waiting(func(w Waiting) { expect.Equal(t, w.Since, 5, "start of the wait") })
}

// The probe does not wait for a signal of the relay that could not be sent.
func TestUnsent(t *testing.T) {
	f := slotFile()
	i := must.Get(f.Slot(1 << 29))(t)
	expect.Equal(t, f.Ask(i, OpSample, 41), error(unix.ESRCH), "a thread that does not exist")
	expect.Equal(t, f.h.relaySent, 0, "signals to wait for")
}

// The holder of a lock has our number of the thread, as the threads that wait for it.
func TestHolder(t *testing.T) {
	f := slotFile()
	expect.Equal(t, f.Holder(7), 7, "in our own pid namespace")
	f.SetNumbers(shifted{})
	expect.Equal(t, f.Holder(7), 1007, "in another one")
	expect.Equal(t, f.Holder(0), 0, "unknown")
	expect.Equal(t, f.Holder(1<<32+7), 0, "no number of a thread")
}
