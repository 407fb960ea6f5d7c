package paused

import (
	"encoding/binary"
	"strings"

	"github.com/seedwalk/seedwalk/context"
)

// Locks in native code of the runtime on Unix. Their layouts are not published, so each lock must prove
// itself: a word counts only if the words that refer to it and the numbers of both threads agree.
//
// Source: the code and the memory of .NET 9.0.5 and 10.0.9 on x86-64; for mutexes also dotnet/runtime
// src/coreclr/pal/src/synchmgr/synchmanager.hpp (CSynchData).

// Offsets in a critical section of .NET 9, which precedes the condition variable of its waiters. .NET
// 10 uses a mutex of the C library instead.
const (
	sectionState   = 0x8 // bit 0: held; above bit 1: the number of waiters
	sectionOwner   = 0x10
	sectionReady   = 0x20
	sectionCond    = 0x50
	sectionEnd     = 0x90
	sectionUsable  = 3 // value of sectionReady
	sectionWaiters = 2 // bits below the number of waiters
)

// section returns the critical section whose condition variable a waiter waits for. The waiter has its
// address in a native frame.
func (t locks) section(w *waiter) (l Lock) {
	var b [sectionCond]byte
	check := func(at uint64) {
		if at&7 != 0 || at+sectionCond > w.futex || w.futex >= at+sectionEnd || !t.Mem.ReadAt(b[:], at) {
			return
		}
		state := binary.LittleEndian.Uint32(b[sectionState:])
		tid := binary.LittleEndian.Uint64(b[sectionOwner:])
		owner, ok := t.outer(tid)
		if ok && owner != w.tid && state&1 != 0 && state>>sectionWaiters != 0 &&
			binary.LittleEndian.Uint32(b[sectionReady:]) == sectionUsable {
			l = Lock{Kind: Section, At: at, Owner: owner}
		}
	}
	for data := withRegisters(w.data, &w.regs); len(data) >= 8; data = data[8:] {
		check(binary.LittleEndian.Uint64(data))
	}
	return l
}

// Offsets from the lock of an entry in one of the runtime's lists of work that one thread does for all, such
// as running a static constructor. The lock's description follows it.
const (
	entryHolder = 0x18 // below the lock: the Thread that does the work
	entryData   = 0x8  // below the lock: the MethodTable of a type
	entryText   = 0xa0 // bytes above the lock with the address of its description

	cctorLock = ".cctor lock\x00"
)

// withType returns l as the lock of a type's static constructor, if it is one. The entry must name the
// lock's owner too, and the lock must have the description of such locks.
func (t locks) withType(l Lock) Lock {
	holder := t.Threads.Objects[l.Owner]
	if l.Kind != Section && l.Kind != Mutex || holder == 0 || t.Names == nil ||
		t.Word(l.At-entryHolder) != holder {
		return l
	}
	var b [entryText]byte
	text := make([]byte, len(cctorLock))
	for n := t.Mem.ReadSome(b[:], l.At); n >= 8; n -= 8 {
		if t.Mem.ReadAt(text, binary.LittleEndian.Uint64(b[n-8:])) && string(text) == cctorLock {
			l.Kind, l.Name = StaticConstructor, t.Names.TypeOf(t.Word(l.At-entryData))
			return l
		}
	}
	return l
}

// waitLayout has the offsets in three structures: what a thread waits for, a place in the queue of an object,
// and the object.
type waitLayout struct {
	count, thread, places    uint64
	tid, object, wait        uint64
	kind, held, pid, by, who uint64
}

var waitLayouts = []waitLayout{
	{8, 16, 24, 24, 48, 56, 36, 48, 52, 56, 64}, // .NET 9
	{4, 8, 16, 16, 40, 48, 20, 32, 36, 40, 48},  // .NET 10
}

const (
	mutexObject = 2 // kind of a Mutex
	waitOne     = 1 // type of a wait that ends with the first of several objects

	maxObjects  = 64     // of one wait
	maxQueue    = 1 << 8 // threads in the queue of one object
	nearFutex   = 0x80   // bytes between the futex of a wait and the wait's structure
	threadBytes = 0x400  // of the structure of a thread, which contains both
)

// mutex returns the System.Threading.Mutex without a name for which a thread waits. If the thread waits for
// all of several objects, mutex returns the first one that another thread owns. If it waits for one of
// several, mutex returns a Lock without an owner, because another object may end the wait.
func (t locks) mutex(w *waiter) (l Lock) {
	for at := w.futex &^ 7; at < w.futex+nearFutex; at += 8 {
		for i := range waitLayouts {
			if l, ok := t.mutexIn(w, at, &waitLayouts[i]); ok {
				return l
			}
		}
	}
	return l
}

// mutexIn is mutex for a wait whose structure is at an address. ok is false if it is not there.
func (t locks) mutexIn(w *waiter, at uint64, y *waitLayout) (l Lock, ok bool) {
	word := t.Word
	thread := word(at + y.thread)
	number, kind := t.Uint32(at+y.count), t.Uint32(at)
	if number == 0 || number > maxObjects || kind > 2 || at-thread > threadBytes {
		return l, false
	}
	for i := range uint64(number) {
		place := word(at + y.places + 8*i)
		object := word(place + y.object)
		if place == 0 || object == 0 || word(place+y.wait) != at || !t.is(t.Uint32(place+y.tid), w.tid) ||
			!t.queues(object, place) {
			return Lock{}, false
		}
		if l.Owner == 0 {
			l = t.mutexAt(object, y)
		}
	}
	if kind == waitOne && number > 1 || l.Owner == w.tid {
		l = Lock{}
	}
	return l, true
}

// mutexAt returns the mutex at an address, a Lock without an owner if no mutex is there, or if it is free.
func (t locks) mutexAt(at uint64, y *waitLayout) Lock {
	tid, who := t.Uint32(at+y.by), t.Word(at+y.who)
	owner, ok := t.outer(uint64(tid))
	_, ours := t.outer(uint64(t.Uint32(at + y.pid)))
	if t.Uint32(at+y.kind) != mutexObject || int32(t.Uint32(at+y.held)) <= 0 || !ok || !ours {
		return Lock{}
	}
	// The structure of the owner must contain the owner's thread number too.
	for i := uint64(0); i < threadBytes; i += 8 {
		if t.Word(who+i) == uint64(tid) {
			return Lock{Kind: MutexObject, At: at, Owner: owner}
		}
	}
	return Lock{}
}

// queues reports whether a place is in the queue of an object.
func (t locks) queues(object, place uint64) bool {
	at := t.Word(object)
	for range maxQueue {
		if at == place || at == 0 {
			break
		}
		at = t.Word(at)
	}
	return at == place
}

// outer returns our number of the process's thread tid.
func (t locks) outer(tid uint64) (uint32, bool) {
	if tid == 0 || tid>>31 != 0 {
		return 0, false
	}
	return t.Threads.Outer(uint32(tid))
}

// is reports whether the process calls our thread tid inner.
func (t locks) is(inner, tid uint32) bool {
	outer, ok := t.outer(uint64(inner))
	return ok && outer == tid
}

// inRuntime returns the lock in native code of the runtime for which a thread waits.
func (t locks) inRuntime(w *waiter) Lock {
	if w.futex == 0 || t.Tables == nil || w.regs.Arch != context.ArchAMD64 {
		return Lock{}
	}
	read := func() Lock {
		if l := t.section(w); l.Owner != 0 {
			return l
		}
		return t.mutex(w)
	}
	l := read()
	if l.Owner == 0 || read() != l || !w.stays(t.Process) {
		return Lock{}
	}
	return l
}

// named returns l as a System.Threading.Mutex with a name, if it is in a file of such mutexes.
func named(l Lock, path string) Lock {
	if _, file, ok := strings.Cut(path, "/.dotnet/shm/"); ok {
		_, name, _ := strings.Cut(file, "/")
		l.Kind, l.Name = MutexObject, strings.TrimSuffix(name, " (deleted)")
	}
	return l
}
