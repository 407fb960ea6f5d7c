package paused

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// put writes a number of n bytes at an address.
func (r room) put(at, v uint64, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(r[at-0x4000:], b[:n])
}

// waitAt is thread 7, which waits at a futex and has these words in its native frames.
func waitAt(mem room, futex uint64, words ...uint64) (locks, *waiter) {
	w := &waiter{tid: 7, futex: futex, regs: context.FromAMD64(context.AMD64{})}
	for _, v := range words {
		w.data = binary.LittleEndian.AppendUint64(w.data, v)
	}
	p := &target.Process{Mem: mem}
	p.Threads.Numbers = target.Numbers{1: true, 7: true, 8: true}
	return locks{p}, w
}

// A critical section counts only if it is in use, held by another thread, and the waiter waits at its
// condition variable.
func TestSection(t *testing.T) {
	for _, c := range []struct {
		name           string
		at, value      uint64
		futex, onStack uint64
		owner          uint32
	}{
		{"held", 0, 0, 0x4168, 0x4100, 8},
		{"its other word", 0, 0, 0x416c, 0x4100, 8},
		{"free", 0x4108, 4, 0x4168, 0x4100, 0},
		{"without waiters", 0x4108, 1, 0x4168, 0x4100, 0},
		{"of no thread", 0x4110, 9, 0x4168, 0x4100, 0},
		{"of the waiter", 0x4110, 7, 0x4168, 0x4100, 0},
		{"not in use", 0x4120, 1, 0x4168, 0x4100, 0},
		{"not on the stack", 0, 0, 0x4168, 0x4108, 0},
		{"of another futex", 0, 0, 0x4148, 0x4100, 0},
	} {
		mem := make(room, 0x400)
		mem.put(0x4108, 5, 4)
		mem.put(0x4110, 8, 8)
		mem.put(0x4120, sectionUsable, 4)
		if c.at != 0 {
			mem.put(c.at, c.value, 8)
		}
		l, w := waitAt(mem, c.futex, 0, c.onStack)
		got := l.section(w)
		expect.True(t, got.Owner == c.owner, "%s: %+v", c.name, got)
	}
}

// A Mutex counts only if the wait, its place in the queue, the queue, and the owner refer to each other.
func TestMutexObject(t *testing.T) {
	const thread, futex, wait, place, object, owner = 0x4100, 0x4120, 0x4138, 0x4400, 0x4500, 0x4600
	for n := range waitLayouts {
		y := &waitLayouts[n]
		for _, c := range []struct {
			name      string
			at, value uint64
			size      int
			owner     uint32
		}{
			{"held", 0, 0, 0, 8},
			{"for all of several objects", wait, 2, 4, 8},
			{"for the first of one", wait, waitOne, 4, 8},
			{"of no kind of wait", wait, 3, 4, 0},
			{"for nothing", wait + y.count, 0, 4, 0},
			{"of another structure", wait + y.thread, 0x5000, 8, 0},
			{"of another wait", place + y.wait, 0x4000, 8, 0},
			{"of another thread", place + y.tid, 8, 4, 0},
			{"not in the queue", object, 0x4480, 8, 0},
			{"an event", object + y.kind, 1, 4, 0},
			{"free", object + y.held, 0, 4, 0},
			{"of another process", object + y.pid, 2, 4, 0},
			{"of no thread", object + y.by, 9, 4, 0},
			{"of the waiter", object + y.by, 7, 4, 0},
			{"of a thread with another number", owner + 0xb0, 1, 8, 0},
		} {
			mem := make(room, 0xc00)
			mem.put(wait+y.count, 1, 4)
			mem.put(wait+y.thread, thread, 8)
			mem.put(wait+y.places, place, 8)
			mem.put(place+y.tid, 7, 4)
			mem.put(place+y.object, object, 8)
			mem.put(place+y.wait, wait, 8)
			mem.put(object, place, 8)
			mem.put(object+y.kind, mutexObject, 4)
			mem.put(object+y.held, 1, 4)
			mem.put(object+y.pid, 1, 4)
			mem.put(object+y.by, 8, 4)
			mem.put(object+y.who, owner, 8)
			mem.put(owner+0xb0, 8, 8)
			mem.put(thread+0xb0, 7, 8)
			if c.size > 0 {
				mem.put(c.at, c.value, c.size)
			}
			l, w := waitAt(mem, futex)
			got := l.mutex(w)
			expect.True(t, got.Owner == c.owner, "layout %d, %s: %+v", n, c.name, got)
		}
	}
}

// The first of several objects may end a wait.
func TestMutexOfSeveral(t *testing.T) {
	const wait, place, object, owner = 0x4138, 0x4400, 0x4500, 0x4700
	for n := range waitLayouts {
		y := &waitLayouts[n]
		mem := make(room, 0xc00)
		mem.put(wait+y.count, 2, 4)
		mem.put(wait+y.thread, 0x4100, 8)
		for i := range uint64(2) {
			place, object := place+0x80*i, object+0x80*i
			mem.put(wait+y.places+8*i, place, 8)
			mem.put(place+y.tid, 7, 4)
			mem.put(place+y.object, object, 8)
			mem.put(place+y.wait, wait, 8)
			mem.put(object, place, 8)
			mem.put(object+y.kind, 1+i, 4) // an event, and a mutex
			mem.put(object+y.held, i, 4)
			mem.put(object+y.pid, 1, 4)
			mem.put(object+y.by, 8, 4)
			mem.put(object+y.who, owner, 8)
		}
		mem.put(owner+0xb0, 8, 8)
		for kind, want := range map[uint64]uint32{waitOne: 0, 2: 8} {
			mem.put(wait, kind, 4)
			l, w := waitAt(mem, 0x4120)
			got := l.mutex(w)
			expect.True(t, got.Owner == want, "layout %d, type %d: %+v", n, kind, got)
		}
	}
}

func TestNamedMutex(t *testing.T) {
	l := Lock{Kind: Mutex, At: 1, Owner: 8}
	expect.Equal(t, named(l, "/usr/lib/libc.so.6"), l, "")
	want := Lock{Kind: MutexObject, At: 1, Owner: 8, Name: "one"}
	expect.Equal(t, named(l, "/tmp/.dotnet/shm/session7942/one (deleted)"), want, "")
}

// The native function behind Thread.Join has the Thread of the awaited thread in its frame.
func TestJoins(t *testing.T) {
	const own, other, third = 0x1000, 0x2000, 0x3000
	for _, c := range []struct {
		name  string
		kind  LockKind
		frame []uint64
		want  uint32
	}{
		{"one", ThreadEnd, []uint64{5, other}, 8},
		{"and its own", ThreadEnd, []uint64{own, other, own}, 8},
		{"twice", ThreadEnd, []uint64{other, other}, 8},
		{"two", ThreadEnd, []uint64{other, third}, 0},
		{"only its own", ThreadEnd, []uint64{own}, 0},
		{"none", ThreadEnd, []uint64{5, 0}, 0},
		{"of a lock", SlimLock, []uint64{other}, 0},
	} {
		l, w := waitAt(nil, 0, c.frame...)
		l.Threads.Objects = map[uint32]uint64{7: own, 8: other, 1: third}
		got := l.joins(&managedWaiter{*w, &managedLock{kind: c.kind}, w.data})
		expect.Equal(t, got, c.want, "%s", c.name)
	}
}
