package paused

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// A futex word counts as a pthread mutex only if all of its fields agree.
func TestMutexOf(t *testing.T) {
	threads := target.Numbers{7: true, 8: true}
	good := lockWord{op: futexWait, expected: contended, Addr: 0x1000,
		words: [10]uint32{2, 0, 8, 1, 0, 0}, ok: true}
	held := func(k LockKind, owner uint32) Lock { return Lock{Kind: k, At: 0x1000, Owner: owner} }
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	for _, c := range []struct {
		name, leaf, image string
		change            func(*lockWord)
		want              Lock
	}{
		{"mutex", "", libc, func(*lockWord) {}, held(Mutex, 8)},
		{"old libpthread", "__lll_lock_wait", "/lib/libpthread-2.17.so",
			func(*lockWord) {}, held(Mutex, 8)},
		{"recursive", "", libc, func(w *lockWord) { w.words[1], w.words[mutexKind] = 3, 1 },
			held(Mutex, 8)},
		{"robust", "", libc, func(w *lockWord) {
			w.expected, w.words[0], w.words[mutexKind], w.linked = waiters|8, waiters|8, 0x91, true
		}, held(Mutex, 8)},
		{"robust, in no list of this process", "", libc, func(w *lockWord) {
			w.expected, w.words[0], w.words[mutexKind] = waiters|8, waiters|8, 0x91
		}, Lock{}},
		{"unreadable", "", libc, func(w *lockWord) { w.ok = false }, Lock{}},
		{"of another library", "", "/usr/lib/librust.so", func(*lockWord) {}, Lock{}},
		{"by syscall(2)", "syscall", libc, func(*lockWord) {}, Lock{}},
		{"a condition variable", "", libc, func(w *lockWord) { w.expected = 0 }, Lock{}},
		{"free by now", "", libc, func(w *lockWord) { w.words[0] = 0 }, Lock{}},
		{"no thread of this process", "", libc, func(w *lockWord) { w.words[mutexOwner] = 9 }, Lock{}},
		{"its own", "", libc, func(w *lockWord) { w.words[mutexOwner] = 7 }, Lock{}},
		{"not in use", "", libc, func(w *lockWord) { w.words[mutexUsers] = 0 }, Lock{}},
		{"no kind", "", libc, func(w *lockWord) { w.words[mutexKind] = 0x1000 }, Lock{}},
		{"a wake", "", libc, func(w *lockWord) { w.op = 1 }, Lock{}},
		{"priority inheriting", "", "/usr/lib/librust.so",
			func(w *lockWord) { w.op, w.words[0] = futexLockPI, 0x80000008 }, held(PIFutex, 8)},
		{"priority inheriting, of a thread that is gone", "", libc,
			func(w *lockWord) { w.op, w.words[0] = futexLockPI, 0xc0000009 }, held(PIFutex, 0)},
	} {
		w := good
		c.change(&w)
		got := w.native(7, threads, c.leaf, c.image)
		expect.True(t, got.Owner == c.want.Owner && got.Kind == c.want.Kind,
			"%s: %+v, want %+v", c.name, got, c.want)
	}
}

// The words of a waiter that are addresses of monitors.
func TestWaiterNames(t *testing.T) {
	all := map[uint64]monitor{0x1000: {}, 0x2000: {}}
	le := func(words ...uint64) (b []byte) {
		for _, w := range words {
			for i := range 8 {
				b = append(b, byte(w>>(8*i)))
			}
		}
		return b
	}
	for _, c := range []struct {
		name string
		w    waiter
		want int
	}{
		{"none", waiter{data: le(1, 2, 3)}, 0},
		{"one, twice", waiter{data: le(0x1000, 5, 0x1000)}, 1},
		{"two", waiter{data: le(0x1000, 0x2000)}, 2},
		{"has given it back", waiter{data: le(0x1000), in: "System.Threading.Monitor.Wait"}, 0},
	} {
		got := c.w.names(all)
		expect.True(t, len(got) == c.want, "%s: %#x", c.name, got)
	}
}

// late lists the owner of a lock only from the second time on.
type late struct{ target.Numbers }

func (n late) Refresh() { n.Numbers[9] = true }

// An owner that is younger than the list of threads has not ended.
func TestConfirmEnded(t *testing.T) {
	all := []managedWaiter{{waiter: waiter{tid: 1}}, {waiter: waiter{tid: 2}}, {waiter: waiter{tid: 3}},
		{waiter: waiter{tid: 4}}}
	second := map[uint32]Lock{1: {SlimLock, 0x1000, 9, true, ""}, 2: {SlimLock, 0x2000, 8, true, ""},
		3: {SlimLock, 0x3000, 7, true, ""}}
	found := map[uint32]Lock{1: {SlimLock, 0x1000, 9, true, ""}, 2: {SlimLock, 0x2000, 8, true, ""},
		3: {SlimLock, 0x3000, 6, true, ""}, 4: {SlimLock, 0x4000, 5, false, ""}}
	p := &target.Process{}
	p.Threads.Numbers = late{target.Numbers{}}
	locks{p}.confirmEnded(all, found, func(w *managedWaiter) Lock {
		l := second[w.tid]
		_, lives := p.Threads.Outer(l.Owner)
		l.Ended = !lives
		return l
	})
	for tid, want := range map[uint32]Lock{1: {SlimLock, 0x1000, 9, false, ""},
		2: {SlimLock, 0x2000, 8, true, ""}, 3: {Kind: SlimLock}, 4: {SlimLock, 0x4000, 5, false, ""}} {
		expect.True(t, found[tid] == want, "thread %d: %+v, want %+v", tid, found[tid], want)
	}
}

// room is memory that starts at 0x4000.
type room []byte

func (r room) ReadAt(p []byte, addr uint64) bool { return r.ReadSome(p, addr) == len(p) }

func (r room) ReadSome(p []byte, addr uint64) int {
	if addr < 0x4000 || addr > 0x4000+uint64(len(r)) {
		return 0
	}
	return copy(p, r[addr-0x4000:])
}

// A restarted system call counts as a futex wait only if its arguments and its word fit: it may also be poll
// or nanosleep. Only a futex wait with a time limit is restarted so.
func TestReadCallRestarted(t *testing.T) {
	const futex, restart = 202, 219
	for _, c := range []struct {
		name                        string
		call                        int64
		addr, op, expected, timeout uint64
		ok, limited                 bool
		block                       Block
	}{
		{"a wait", futex, 0x4000, 0x80, 2, 0, true, false, ForEvent},
		{"a wait with a time limit", futex, 0x4000, 0x189, 2, 0x7000, true, true, ForEvent},
		{"restarted", restart, 0x4000, 0x189, 2, 0x7000, true, true, ForEvent},
		{"restarted, of another value", restart, 0x4000, 0x189, 3, 0x7000, false, true, ForInput},
		{"poll of 6 files", restart, 0x4000, 6, 2, 0, false, true, ForInput},
		{"poll of 13 files", restart, 0x4000, 13, 2, 0, false, true, ForInput},
		{"poll of 521 files", restart, 0x4000, 0x209, 2, 0, false, true, ForInput},
		{"poll without a time limit", restart, 0x4000, 6, 0xffffffff, 0, false, false, ForInput},
		{"clock_nanosleep", restart, 1, 0, 0x4000, 0, false, true, ForInput},
		{"not aligned", restart, 0x4002, 0, 0, 0, false, true, ForInput},
	} {
		var g context.AMD64
		g.GPR[context.RDI], g.GPR[context.RSI], g.GPR[context.RDX], g.GPR[context.R10] = c.addr, c.op,
			c.expected, c.timeout
		mem := make(room, 64)
		mem[0] = 2
		s := &Process{target: &target.Process{Mem: mem}}
		th := Thread{Regs: context.FromAMD64(g)}
		s.ReadCall(&th, live.Stood{Call: c.call})
		expect.True(t, th.word.ok == c.ok && th.limited == c.limited && th.block == c.block,
			"%s: ok %v, limited %v, block %d", c.name, th.word.ok, th.limited, th.block)
	}
}
