package paused

import (
	"encoding/binary"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/unwind"
)

// The runtime's table of sync blocks (dotnet/runtime src/coreclr/vm/syncblk.h). An entry begins with its
// SyncBlock, which begins with its lock, the AwareLock: the state, the recursion count, the owner, the
// owner's kernel number, a count, and the entry's own index. The descriptor publishes the table, the entry
// size, and the end of the lock. The other offsets are assumed and checked for each block: its index must be
// its own, and its owner must be in the thread list with that kernel number, unless it has ended.
const (
	lockState   = 0
	lockThread  = 8
	lockTID     = 16
	lockIndex   = 28
	lockSize    = 56 // .NET 9 and 10
	indexBits   = 1<<26 - 1
	stateLocked = 1
	stateWaits  = 6 // bits below the count of waiters
	orphaned    = 1<<64 - 1
)

// Bounds of the table: the number of entries, and of consecutive unused entries.
const (
	maxBlocks = 1 << 20
	maxUnused = 1 << 12
	blockStep = 256 // entries read at once
)

// locks finds the locks of a process.
type locks struct{ *target.Process }

// monitor is a SyncBlock whose lock is held while others wait for it.
type monitor struct {
	at, index uint64
	owner     uint32
	ended     bool // the owner ended without releasing the lock; owner is 0 if its number is not known
	waiters   int
}

// monitors returns the locks of managed objects for which threads wait, by address.
func (t locks) monitors() map[uint64]monitor {
	table, size, ok := t.syncTable()
	if !ok {
		return nil
	}
	out := map[uint64]monitor{}
	b := make([]byte, blockStep*size)
	unused := 0
	for first := uint64(0); first < maxBlocks; first += blockStep {
		n := uint64(t.Mem.ReadSome(b, table+first*size)) / size
		for i := range n {
			at := binary.LittleEndian.Uint64(b[i*size:])
			if at == 0 {
				if unused++; unused > maxUnused {
					return out
				}
				continue
			}
			unused = 0
			m, ok := t.monitor(at, first+i)
			if !ok {
				return out // beyond the table's end
			}
			if m.waiters > 0 && (m.owner != 0 || m.ended) {
				out[at] = m
			}
		}
		if n < blockStep {
			break
		}
	}
	return out
}

// syncTable returns the table's address and its entry size.
func (t locks) syncTable() (table, size uint64, ok bool) {
	if t.Tables == nil || !t.Tables.Proven() {
		return 0, 0, false
	}
	variable, ok1 := t.Tables.Global("SyncTableEntries")
	d := t.Tables.Descriptor()
	entry, ok2 := d.Offset("SyncTableEntry", "!")
	block, ok3 := d.Offset("SyncTableEntry", "SyncBlock")
	end, ok4 := d.Offset("SyncBlock", "InteropInfo")
	if !ok1 || !ok2 || !ok3 || !ok4 || block != 0 || entry < 8 || entry > 64 || end != lockSize {
		return 0, 0, false
	}
	table = t.Word(variable)
	return table, uint64(entry), table != 0
}

// monitor reads the SyncBlock at at. ok is false if the block is unreadable or its index is not the entry's.
// The owner is 0 if the lock is free or its owner cannot be confirmed.
func (t locks) monitor(at, index uint64) (m monitor, ok bool) {
	var b [lockSize]byte
	if at&7 != 0 || !t.Mem.ReadAt(b[:], at) ||
		uint64(binary.LittleEndian.Uint32(b[lockIndex:])&indexBits) != index {
		return m, false
	}
	state := binary.LittleEndian.Uint32(b[lockState:])
	m = monitor{at: at, index: index, waiters: int(state >> stateWaits)}
	if state&stateLocked != 0 {
		m.owner, m.ended = t.holder(b[lockThread:lockTID], binary.LittleEndian.Uint64(b[lockTID:]))
	}
	return m, true
}

// holder returns the owner of a held lock, and whether it has ended, from the lock's holder field and kernel
// number. The kernel number of an owner that had ended before anyone waited is 0, or orphaned if its Thread
// was deleted by then. While an owner enters or leaves, the number may be 0 too, but the holder is alive.
func (t locks) holder(holder []byte, tid uint64) (owner uint32, ended bool) {
	exists := false
	if tid>>31 == 0 && tid != 0 {
		owner, exists = t.Threads.Outer(uint32(tid))
	}
	switch {
	case exists && t.holds(owner, holder):
		return owner, false
	case exists, tid>>31 != 0 && tid != orphaned, tid == 0 && binary.LittleEndian.Uint64(holder) == 0,
		len(t.Threads.Objects) == 0:
		return 0, false
	}
	for living := range t.Threads.Objects {
		if t.holds(living, holder) {
			return 0, false
		}
	}
	if tid == orphaned {
		tid = 0
	}
	return uint32(tid), true
}

// holds reports whether the holder field of a lock names the thread: .NET 9 stores its Thread there, .NET 10
// its managed number.
func (t locks) holds(tid uint32, holder []byte) bool {
	object := t.Threads.Objects[tid]
	if object == 0 {
		return false
	}
	number, ok := t.Tables.Descriptor().Offset("Thread", "Id")
	if binary.LittleEndian.Uint64(holder) == object {
		return true
	}
	id := t.Uint32(object + uint64(number))
	return ok && id != 0 && id == binary.LittleEndian.Uint32(holder)
}

// waiter is a thread that waits in native code below a managed frame.
type waiter struct {
	tid  uint32
	at   uint64 // address of data
	data []byte
	regs context.Registers
	in   string // the managed method
	// futex is the address of the word at which it waits.
	futex uint64
}

// maxNative bounds the native frames of a wait, bytes.
const maxNative = 64 << 10

// waits copies the native frames of a thread that waits at a futex.
func (th *Thread) waits(s *Stack) (w waiter, ok bool) {
	if !th.word.ok {
		return w, false
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Kind != unwind.KindManaged {
			continue
		}
		off := th.Regs.SP() - th.Stack.Addr
		end := f.SP - th.Stack.Addr
		if i == 0 || end > uint64(len(th.Stack.Data)) || off > end || end-off > maxNative {
			return w, false
		}
		return waiter{th.TID, th.Regs.SP(),
			append([]byte(nil), th.Stack.Data[off:end]...), th.Regs, f.Name, th.word.Addr}, true
	}
	return w, false
}

// names lists the monitors whose address is in a waiter's native frames. A thread that waits to enter a
// monitor has its address there. Other addresses may be stale.
func (w *waiter) names(all map[uint64]monitor) (out []uint64) {
	if strings.HasPrefix(w.in, "System.Threading.Monitor.Wait") ||
		strings.HasPrefix(w.in, "System.Threading.Monitor.ObjWait") {
		return nil // Monitor.Wait has released the monitor
	}
	seen := map[uint64]bool{}
	word := func(v uint64) {
		if _, ok := all[v]; ok && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	for i := 0; i+8 <= len(w.data); i += 8 {
		word(binary.LittleEndian.Uint64(w.data[i:]))
	}
	regs := w.regs.AMD64.GPR[:]
	if w.regs.Arch == context.ArchARM64 {
		regs = w.regs.ARM64.X[:]
	}
	for _, v := range regs {
		word(v)
	}
	return out
}

// stays reports whether the thread's native frames are unchanged.
func (w *waiter) stays(t *target.Process) bool {
	b := make([]byte, len(w.data))
	return t.Mem.ReadAt(b, w.at) && string(b) == string(w.data)
}

// entered finds the monitor that each waiter wants, and returns it by TID. A waiter is accepted on two
// conditions. The monitor's waiter count equals the number of threads whose frames contain its address. The
// waiter's frames have not changed since they were read. Other waiters are missing in the result, and so is
// a thread with the addresses of two monitors. An owner has ended only if a second reading says so too.
func (t locks) entered(waiters []waiter) map[uint32]Lock {
	out := map[uint32]Lock{}
	if len(waiters) == 0 {
		return out
	}
	t.Threads.Read()
	all := t.monitors()
	by, several := map[uint64][]*waiter{}, map[uint32]bool{}
	for i := range waiters {
		names := waiters[i].names(all)
		several[waiters[i].tid] = len(names) > 1
		for _, at := range names {
			by[at] = append(by[at], &waiters[i])
		}
	}
	for at, who := range by {
		m := all[at]
		if len(who) != m.waiters || m.ended && !t.stillEnded(m) {
			continue
		}
		for _, w := range who {
			if !several[w.tid] && w.stays(t.Process) {
				out[w.tid] = Lock{Kind: Monitor, At: at, Owner: m.owner, Ended: m.ended}
			}
		}
	}
	return out
}

// stillEnded reads a monitor again, after the threads: its owner may be younger than the first list of them.
func (t locks) stillEnded(m monitor) bool {
	t.Threads.Read()
	again, ok := t.monitor(m.at, m.index)
	return ok && again == m
}
