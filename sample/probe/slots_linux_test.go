package probe

import (
	"os"
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

// The probe does not wait for a signal of the relay that could not be sent.
func TestUnsent(t *testing.T) {
	f := slotFile()
	i := must.Get(f.Slot(1 << 29))(t)
	expect.Equal(t, f.Ask(i, OpSample, 41), error(unix.ESRCH), "a thread that does not exist")
	expect.Equal(t, f.h.relaySent, 0, "signals to wait for")
}
