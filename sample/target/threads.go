package target

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
)

// threadList finds the runtime's Thread objects by the kernel's thread numbers.
type threadList struct {
	mem               live.Memory
	store             uint64 // address of the variable that points to the ThreadStore
	suspends          uint64 // address of the variable that points to the thread that stops all others
	first, next, osid uint64
	known             bool
	Objects           map[uint32]uint64
	Numbers           Numbering // nil = the process numbers threads as we do
	links             [512]byte
}

// Numbering translates the process's own thread numbers.
type Numbering interface {
	Refresh()
	Outer(inner uint32) (outer uint32, ok bool)
}

// Numbers are the threads of a process that numbers them as we do.
type Numbers map[uint32]bool

// Refresh does nothing: a core does not change.
func (n Numbers) Refresh() {}

// Outer reports whether the thread exists.
func (n Numbers) Outer(inner uint32) (uint32, bool) { return inner, n[inner] }

// Outer returns our number of the thread that the process calls tid.
func (l *threadList) Outer(tid uint32) (uint32, bool) {
	if l.Numbers == nil {
		return tid, true
	}
	return l.Numbers.Outer(tid)
}

// MaxThreads bounds the runtime's list.
const MaxThreads = 1 << 16

func (l *threadList) init(mem live.Memory, t *contract.Tables) {
	d := t.Descriptor()
	store, ok1 := t.Global("ThreadStore")
	first, ok2 := d.Offset("ThreadStore", "FirstThreadLink")
	next, ok3 := d.Offset("Thread", "LinkNext")
	osid, ok4 := d.Offset("Thread", "OSId")
	l.mem, l.store, l.first, l.next, l.osid = mem, store, uint64(first), uint64(next), uint64(osid)
	l.suspends, _ = t.Global("GCThread")
	l.known = ok1 && ok2 && ok3 && ok4
}

// Read walks the list while the runtime may change it. The walk ends after MaxThreads entries, or at an entry
// that does not look like a Thread. Objects then has the threads up to there, and the next Read may find
// more.
func (l *threadList) Read() {
	l.Objects = map[uint32]uint64{}
	if l.Numbers != nil {
		l.Numbers.Refresh()
	}
	if !l.known {
		return
	}
	store, _ := memory.Word(l.mem, l.store)
	at, _ := memory.Word(l.mem, store+l.first)
	for range MaxThreads {
		if at == 0 {
			return
		}
		thread := at - l.next
		next, tid := l.link(thread)
		if tid != 0 && tid < 1<<31 {
			if ours, ok := l.Outer(uint32(tid)); ok {
				l.Objects[ours] = thread
			}
		}
		at = next
	}
}

// link reads a Thread's link to the next one and its number, in one call if the two words are close.
func (l *threadList) link(thread uint64) (next, tid uint64) {
	low := min(l.next, l.osid)
	b := l.links[:min(max(l.next, l.osid)-low+8, uint64(len(l.links)))]
	if max(l.next, l.osid)-low+8 > uint64(len(b)) || thread < 4096 || !l.mem.ReadAt(b, thread+low) {
		next, _ = memory.Word(l.mem, thread+l.next)
		tid, _ = memory.Word(l.mem, thread+l.osid)
		return next, tid
	}
	return binary.LittleEndian.Uint64(b[l.next-low:]), binary.LittleEndian.Uint64(b[l.osid-low:])
}

// Suspends reports whether a thread is stopping all others or has stopped them, mostly for a collection.
func (t *Process) Suspends(tid uint32) bool {
	object := t.Threads.Objects[tid]
	return object != 0 && t.Word(t.Threads.suspends) == object
}

// Cooperative reports whether the runtime counts a thread as running managed code.
func (t *Process) Cooperative(tid uint32) bool {
	object := t.Threads.Objects[tid]
	if object == 0 || t.Tables == nil {
		return false
	}
	at, ok := t.Tables.Descriptor().Offset("Thread", "PreemptiveGCDisabled")
	return ok && t.Uint32(object+uint64(at)) != 0
}
