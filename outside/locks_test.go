package outside

import "testing"

// A word that a thread waits at is a pthread mutex only if all of it says so.
func TestMutexOf(t *testing.T) {
	threads := Numbers{7: true, 8: true}
	good := lockWord{op: futexWait, expected: contended, at: 0x1000, words: [6]uint32{2, 0, 8, 1, 0, 0}, ok: true}
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	for _, c := range []struct {
		name, leaf, image string
		change            func(*lockWord)
		want              Lock
	}{
		{"mutex", "", libc, func(*lockWord) {}, Lock{Mutex, 0x1000, 8}},
		{"old libpthread", "__lll_lock_wait", "/lib/libpthread-2.17.so", func(*lockWord) {}, Lock{Mutex, 0x1000, 8}},
		{"recursive", "", libc, func(w *lockWord) { w.words[1], w.words[mutexKind] = 3, 1 }, Lock{Mutex, 0x1000, 8}},
		{"unreadable", "", libc, func(w *lockWord) { w.ok = false }, Lock{}},
		{"of another library", "", "/usr/lib/librust.so", func(*lockWord) {}, Lock{}},
		{"by syscall(2)", "syscall", libc, func(*lockWord) {}, Lock{}},
		{"a condition variable", "", libc, func(w *lockWord) { w.expected = 0 }, Lock{}},
		{"free by now", "", libc, func(w *lockWord) { w.words[0] = 0 }, Lock{}},
		{"no thread of this process", "", libc, func(w *lockWord) { w.words[mutexOwner] = 9 }, Lock{}},
		{"its own", "", libc, func(w *lockWord) { w.words[mutexOwner] = 7 }, Lock{}},
		{"nobody uses it", "", libc, func(w *lockWord) { w.words[mutexUsers] = 0 }, Lock{}},
		{"no kind", "", libc, func(w *lockWord) { w.words[mutexKind] = 0x1000 }, Lock{}},
		{"a wake", "", libc, func(w *lockWord) { w.op = 1 }, Lock{}},
		{"priority inheriting", "", "/usr/lib/librust.so", func(w *lockWord) { w.op, w.words[0] = futexLockPI, 0x80000008 }, Lock{PIFutex, 0x1000, 8}},
		{"priority inheriting, of a thread that is gone", "", libc, func(w *lockWord) { w.op, w.words[0] = futexLockPI, 0xc0000009 }, Lock{PIFutex, 0x1000, 0}},
	} {
		w := good
		c.change(&w)
		if got := w.native(7, threads, c.leaf, c.image); got.Owner != c.want.Owner || got.Kind != c.want.Kind {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Which of a waiter's words are monitors.
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
		if got := c.w.names(all); len(got) != c.want {
			t.Errorf("%s: %#x", c.name, got)
		}
	}
}
