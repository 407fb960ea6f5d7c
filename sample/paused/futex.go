package paused

import (
	"encoding/binary"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
)

// LockKind is what a thread waits for.
type LockKind uint8

const (
	NoLock       LockKind = iota
	Mutex                 // a pthread mutex
	PIFutex               // a futex whose owner the kernel keeps in its word
	Monitor               // a managed object that is locked
	SlimLock              // a System.Threading.Lock
	ReaderWriter          // a ReaderWriterLockSlim
)

func (k LockKind) String() string {
	return [...]string{"", "pthread mutex", "priority-inheriting futex", "monitor", "System.Threading.Lock", "reader-writer lock"}[k]
}

// Lock is what a thread waits for. Owner is 0 where nothing proves it.
type Lock struct {
	Kind  LockKind
	At    uint64
	Owner uint32
}

// lockWord is what stood at the address that a thread's futex call names, while the
// thread stood.
type lockWord struct {
	op, expected uint32
	Addr         uint64
	words        [6]uint32
	ok           bool
}

// The futex call (futex(2), uapi linux/futex.h) and what is in its word.
const (
	futexAMD64    = 202
	futexARM64    = 98
	futexWait     = 0
	futexLockPI   = 6
	futexWaitBits = 9
	futexLockPI2  = 13
	futexOp       = 0x7f // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME, which is 0x100
	futexOwner    = 0x3fffffff
)

// ReadLock reads the word that a thread waits at, while it stands: who holds the lock
// at that instant does so while this one waits for it.
func (s *Process) ReadLock(th *Thread, st live.Stood) {
	args, ok := s.futexCall(&th.Regs, st.Call)
	if !ok {
		return
	}
	w := &th.word
	w.Addr, w.op, w.expected = args[0], uint32(args[1])&futexOp, uint32(args[2])
	var b [24]byte
	if w.ok = s.target.Mem.ReadSome(b[:], w.Addr) == len(b); w.ok {
		for i := range w.words {
			w.words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	}
}

// futexCall are the arguments of the futex call that a thread waits in. On ARM64 the kernel
// does not tell that it does: a thread that stands has been led back to the instruction
// that makes the call anew, with its arguments (arch/arm64/kernel/signal.c, do_signal).
func (s *Process) futexCall(r *context.Registers, call int64) (args [3]uint64, ok bool) {
	if r.Arch == context.ArchAMD64 {
		g := &r.AMD64.GPR
		return [3]uint64{g[context.RDI], g[context.RSI], g[context.RDX]}, call == futexAMD64
	}
	const svc = 0xd4000001 // svc #0
	var b [4]byte
	x := &r.ARM64.X
	ok = r.Arch == context.ArchARM64 && x[8] == futexARM64 && s.target.Mem.ReadSome(b[:], r.IP()) == len(b) && binary.LittleEndian.Uint32(b[:]) == svc
	return [3]uint64(x[:3]), ok
}

// Places in glibc's pthread_mutex_t on 64-bit systems (sysdeps/nptl/bits/struct_mutex.h),
// in words: __lock, __count, __owner, __nusers, __kind.
const (
	mutexOwner = 2
	mutexUsers = 3
	mutexKind  = 4

	contended = 2                           // of __lock: held, and somebody waits
	kinds     = 0x1f | 0x100 | 0x200 | 0x80 // every bit that a kind of mutex may have
)

// native is the lock that the word is of, if it proves to be one: of a priority-
// inheriting one the kernel's own rules say who holds it. A pthread mutex is one that
// is waited for by the number which only its slow path waits for, and that names a
// thread of this process as its owner, which is not the waiting one, and a sane number
// of users. leaf is the function that made the call, in which image.
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
	if w.expected != contended || w.words[0] != contended || !ok || owner == tid || !ofLibc(image) || leaf == "syscall" ||
		w.words[mutexUsers] == 0 || w.words[mutexUsers] > target.MaxThreads || w.words[mutexKind]&^kinds != 0 {
		return Lock{}
	}
	l.Kind, l.Owner = Mutex, owner
	return l
}

// ofLibc reports whether an image is one of glibc's: other libraries have futexes of
// their own, with other words behind them.
func ofLibc(path string) bool {
	name := strings.TrimSuffix(filepath.Base(path), " (deleted)")
	return strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "libc-2.") || strings.HasPrefix(name, "libpthread")
}
