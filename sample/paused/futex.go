package paused

import (
	"encoding/binary"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
)

// LockKind is the kind of lock that a thread waits for.
type LockKind uint8

const (
	NoLock            LockKind = iota
	Mutex                      // a pthread mutex
	PIFutex                    // a futex whose word holds its owner, maintained by the kernel
	Monitor                    // a managed object that is locked
	SlimLock                   // a System.Threading.Lock
	ReaderWriter               // a ReaderWriterLockSlim
	ThreadEnd                  // no lock: the end of a thread (Thread.Join)
	Section                    // a critical section of the runtime
	StaticConstructor          // a type's static constructor, which another thread runs
	MutexObject                // a System.Threading.Mutex
)

func (k LockKind) String() string {
	return [...]string{"", "pthread mutex", "priority-inheriting futex", "monitor",
		"System.Threading.Lock", "reader-writer lock", "end of a thread", "lock of the runtime",
		"static constructor", "System.Threading.Mutex"}[k]
}

// Lock is the lock that a thread waits for. Owner is 0 if no owner is proven. Ended reports that the owner
// ended without releasing the lock; Owner is then its former number in the process, 0 if that is not known.
type Lock struct {
	Kind  LockKind
	At    uint64
	Owner uint32
	Ended bool
	Name  string // of the type with the static constructor, or of a System.Threading.Mutex; "" if it has none
}

// lockWord is the futex word of a thread's call, read while the thread was stopped.
type lockWord struct {
	op, expected uint32
	Addr         uint64
	words        [10]uint32
	linked       bool // the robust list of a thread of this process contains the mutex
	ok           bool
}

// The futex call (futex(2), uapi linux/futex.h) and the fields of its word.
const (
	futexWait     = 0
	futexLockPI   = 6
	futexWaitBits = 9
	futexLockPI2  = 13
	futexRealtime = 0x100
	futexOp       = 0x7f // removes FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
	futexOwner    = 0x3fffffff
)

// ReadCall reads the system call in which a stopped thread waits. If that is a futex call, it also reads the
// word at which the thread waits. The owner in it holds the lock at that instant.
func (s *Process) ReadCall(th *Thread, st live.Stood) {
	c := s.callOf(&th.Regs, st.Call)
	th.block, th.limited = c.waits()
	restarted := c.is(restartAMD64, restartARM64)
	if !restarted && !c.is(futexAMD64, futexARM64) {
		return
	}
	w := &th.word
	w.Addr, w.op, w.expected = c.args[0], uint32(c.args[1])&futexOp, uint32(c.args[2])
	var b [40]byte
	if w.ok = s.target.Mem.ReadSome(b[:], w.Addr) >= 24; w.ok {
		for i := range w.words {
			w.words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		prev := binary.LittleEndian.Uint64(b[4*mutexPrev:]) &^ 1
		next, ok := memory.Word(s.target.Mem, prev)
		w.linked = ok && next&^1 == w.Addr+4*mutexNext
	}
	if restarted { // maybe nanosleep, clock_nanosleep, or poll; their arguments rarely look like a futex wait
		waits := w.op == futexWait || w.op == futexWaitBits // the kernel restarts no other call like this
		w.ok = w.ok && waits && c.args[1] < 2*futexRealtime && w.Addr&3 == 0 && w.words[0] == w.expected
		if w.ok { // the kernel restarts only futex waits with a time limit
			th.block, th.limited = ForEvent, true
		}
	}
}

// Offsets in glibc's pthread_mutex_t on 64-bit systems (sysdeps/nptl/bits/struct_mutex.h), in words: __lock,
// __count, __owner, __nusers, __kind, __list.
const (
	mutexOwner = 2
	mutexUsers = 3
	mutexKind  = 4
	mutexPrev  = 6
	mutexNext  = 8

	contended = 2                           // value of __lock: held, with waiters
	waiters   = 1 << 31                     // in __lock of a robust mutex: its owner, with waiters
	robust    = 0x10                        // bit of __kind
	kinds     = 0x1f | 0x100 | 0x200 | 0x80 // all bits of the kinds of mutexes
)

// native returns the lock that contains the word, or a Lock of kind NoLock if the lock cannot be proven.
// The kernel maintains the owner of a priority-inheriting futex. Any other word is a pthread mutex if three
// conditions hold. The wait expects the value that only the slow path of a mutex uses. The owner is another
// thread of this process. The number of users is plausible. A robust mutex, which processes may share, must
// also be in the list of a thread of this process. leaf is the function that made the call, and image the
// file that contains it.
func (w *lockWord) native(tid uint32, numbers target.Numbering, leaf, image string) (l Lock) {
	if !w.ok {
		return l
	}
	l.At = w.Addr
	switch w.op {
	case futexLockPI, futexLockPI2:
		l.Kind = PIFutex
		if owner, ok := numbers.Outer(w.words[0] & futexOwner); ok {
			l.Owner = owner
		}
		return l
	case futexWait, futexWaitBits:
	default:
		return Lock{}
	}
	owner, ok := numbers.Outer(w.words[mutexOwner])
	held := uint32(contended)
	if w.words[mutexKind]&robust != 0 && w.linked {
		held = waiters | w.words[mutexOwner]
	}
	if w.expected != held || w.words[0] != held || !ok || owner == tid || !isGlibc(image) ||
		leaf == "syscall" ||
		w.words[mutexUsers] == 0 || w.words[mutexUsers] > target.MaxThreads ||
		w.words[mutexKind]&^kinds != 0 {
		return Lock{}
	}
	l.Kind, l.Owner = Mutex, owner
	return l
}

// isGlibc reports whether an image belongs to glibc. Other libraries have other words behind a futex.
func isGlibc(path string) bool {
	name := strings.TrimSuffix(filepath.Base(path), " (deleted)")
	return strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "libc-2.") ||
		strings.HasPrefix(name, "libpthread")
}
