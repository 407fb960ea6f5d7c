package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
)

// File is the memory shared with one probe. One goroutine uses it, but for Beat.
type File struct {
	reader
	data  []byte
	arch  context.Arch // of the target, which may change what it has written
	slots []slot
	waits []waiter
	types []droppedType
	pid   int              // as this process sees the target
	dead  []int32          // slots of threads that have ended and still have a timer
	used  map[uint32]int32 // slot of a thread

	numbers Numbers // of the target's threads; nil = it numbers them as we do
}

// Numbers translates between our numbers of threads and the target's own. Those in the
// file are the target's.
type Numbers interface {
	Inner(outer uint32) (inner uint32, ok bool)
	Outer(inner uint32) (outer uint32, ok bool)
	Refresh()
}

// SetNumbers tells how the target numbers its threads.
func (f *File) SetNumbers(n Numbers) { f.numbers = n }

// outer is our number of a thread that the target calls tid, 0 if there is none.
func (f *File) outer(tid uint32) uint32 {
	if f.numbers == nil || tid == 0 {
		return tid
	}
	ours, ok := f.numbers.Outer(tid)
	if !ok {
		f.numbers.Refresh()
		ours, _ = f.numbers.Outer(tid)
	}
	return ours
}

// inner is what the target calls a thread, 0 if it is none of its.
func (f *File) inner(tid uint32) uint32 {
	if f.numbers == nil {
		return tid
	}
	theirs, _ := f.numbers.Inner(tid)
	return theirs
}

// Open maps the file that a probe in process pid has sent.
func Open(fd, pid int) (*File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size != FullSize {
		return nil, fmt.Errorf("the probe's file has %d bytes, not %d: it is of another version", st.Size, FullSize)
	}
	data, err := unix.Mmap(fd, 0, FullSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	f := &File{data: data, pid: pid, used: map[uint32]int32{}}
	f.h = (*header)(unsafe.Pointer(&data[0]))
	if f.h.magic != Magic || f.h.version != Version {
		version := f.h.version
		unix.Munmap(data)
		return nil, fmt.Errorf("the probe is of another version (%d, not %d)", version, Version)
	}
	arch := f.h.arch
	f.arch = context.Arch(min(arch, 255))
	if f.form = formats[f.arch]; f.form.regs == 0 {
		unix.Munmap(data)
		return nil, fmt.Errorf("the probe is of an architecture that is not known (%d)", arch)
	}
	f.slots = unsafe.Slice((*slot)(unsafe.Pointer(&data[HeaderSize])), Slots)
	f.waits = unsafe.Slice((*waiter)(unsafe.Pointer(&data[HeaderSize+Slots*SlotSize])), Waiters)
	f.types = unsafe.Slice((*droppedType)(unsafe.Pointer(&data[typesAt])), types)
	f.ring = data[beforeRing:FileSize]
	f.done = map[uint64]uint64{}
	f.tail = atomic.LoadUint64(&f.h.tail)
	f.Beat()
	return f, nil
}

// Greeted returns the file that came with a probe's greeting; -1 and no error for a greeting
// without one, which asks what to load. ErrNoGreeting is the answer to other bytes.
func Greeted(first, control []byte) (fd int, err error) {
	if len(first) != 8 || binary.LittleEndian.Uint64(first) != Magic {
		return -1, ErrNoGreeting
	}
	if len(control) == 0 {
		return -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return -1, errNoFile
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errNoFile
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// ErrNoGreeting says that what was sent is not a probe's greeting.
var ErrNoGreeting = errors.New("no greeting of a probe")

var errNoFile = errors.New("the probe sent no file")

// Arch is the target's.
func (f *File) Arch() context.Arch { return f.arch }

// ExtraRoom is how much of the runtime's Thread is copied at most, bytes.
func (f *File) ExtraRoom() uint32 { return uint32(f.form.extra) }

// Close unmaps the file.
func (f *File) Close() error { return unix.Munmap(f.data) }

// Read gives every record there is to g.
func (f *File) Read(g func(*Record)) {
	if f.numbers == nil {
		f.read(g)
		return
	}
	f.read(func(r *Record) {
		if r.TID = f.outer(r.TID); r.TID != 0 {
			g(r)
		}
	})
}

// Clock is the probe's, in nanoseconds.
func Clock() uint64 {
	var t unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&t)), 0) // it does not wait, and Go's monitor sleeps on
	return uint64(t.Nano())
}

// World is the offset from the probe's clock to nanoseconds since 1970.
func World() int64 { return time.Now().UnixNano() - int64(Clock()) }

// wake wakes the probe's own thread.
func (f *File) wake() {
	const wake = 1
	unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&f.h.leave)), wake, 1)
}

// SetTimerKeep has keep of Thinning expiries of a timer be samples, chosen at random, each of
// weight 1. With 0 all are, of weight 1 + overrun.
func (f *File) SetTimerKeep(keep uint32) { atomic.StoreUint32(&f.h.timerKeep, keep) }

// SetPeriod sets the period of timers armed from now on, in nanoseconds of a thread's
// processor time.
func (f *File) SetPeriod(nanos uint64) { atomic.StoreUint64(&f.h.period, nanos) }

// Where is where the target has the header, and the tag that is in it: after an
// exec it is gone.
func (f *File) Where() (base uint64, tag uint32) { return f.h.base, f.h.tag }

// Stats are the probe's own counters.
type Stats struct {
	Signals   uint64 // times its handler ran
	Dropped   uint64 // samples for which the ring had no room
	Strangers uint64 // signals that somebody else sent
	Timers    uint64 // armed now
	Stopped   uint64 // timers stopped because the tool was gone
	Nanos     uint64 // in the handler, all together
}

// Stats reads them, each by itself.
func (f *File) Stats() Stats {
	h := f.h
	return Stats{atomic.LoadUint64(&h.signals), atomic.LoadUint64(&h.dropped), atomic.LoadUint64(&h.strangers),
		atomic.LoadUint64(&h.timers), atomic.LoadUint64(&h.stopped), atomic.LoadUint64(&h.nanos)}
}

// Relay is the signal that opens a thread's mask where it holds back nothing but ours, as
// a handler of the runtime that never returned has left it; false if it is another mask, or
// there is no such signal.
func (f *File) Relay(blocked uint64) (sig int, ok bool) {
	ours := bit(f.h.legacy) | bit(f.h.realTime)
	return int(f.h.relay), f.h.relay != 0 && blocked != 0 && blocked&^ours == 0
}

// bit is a signal's in a mask, 0 = no signal.
func bit(sig uint32) uint64 {
	if sig == 0 {
		return 0
	}
	return 1 << (sig - 1)
}

// Signals are the numbers of the probe's signals, 0 for one it has not.
func (f *File) Signals() (legacy, realTime int) { return int(f.h.legacy), int(f.h.realTime) }

// ErrFull is Slot's answer where every slot is taken.
var ErrFull = errors.New("more threads than the probe has slots")

// ErrGone is the answer for a thread that the target no longer has.
var ErrGone = errors.New("no thread of the process")

// Slot finds or makes the slot of a thread, near the place where the probe looks
// for it if a signal comes without a cookie.
func (f *File) Slot(tid uint32) (int, error) {
	if i, ok := f.used[tid]; ok {
		return int(i), nil
	}
	inner := f.inner(tid)
	if inner == 0 {
		return 0, ErrGone
	}
	if len(f.used)+len(f.dead) >= Slots {
		return 0, ErrFull
	}
	for i := range uint32(Slots) {
		at := (inner + i) % Slots
		if s := &f.slots[at]; atomic.LoadUint32(&s.tid) == 0 {
			*s = slot{}
			atomic.StoreUint32(&s.tid, inner)
			f.used[tid] = int32(at)
			return int(at), nil
		}
	}
	return 0, ErrFull
}

// Free gives the slot of a thread back that has ended. Its timer is ended by the
// next thread that takes a signal; until then the slot is not free.
func (f *File) Free(tid uint32) {
	i, ok := f.used[tid]
	if !ok {
		return
	}
	delete(f.used, tid)
	if atomic.LoadUint32(&f.slots[i].timer) == 0 {
		atomic.StoreUint32(&f.slots[i].tid, 0)
		return
	}
	f.dead = append(f.dead, i)
}

// Reap asks for the end of the timers of threads that have ended.
func (f *File) Reap() {
	rest := f.dead[:0]
	for _, i := range f.dead {
		if atomic.LoadUint32(&f.slots[i].timer) == 0 {
			atomic.StoreUint32(&f.slots[i].tid, 0)
		} else {
			rest = append(rest, i)
		}
	}
	f.dead = rest
	for k := range f.h.reap {
		if k >= len(f.dead) {
			break
		}
		if atomic.CompareAndSwapUint32(&f.h.reap[k], 0, uint32(f.dead[k])+1) {
			atomic.StoreUint32(&f.h.reaping, 1)
		}
	}
}

// SetStack tells the bounds of a thread's own stack: what may be copied without
// asking the kernel.
func (f *File) SetStack(i int, low, high uint64) {
	s := &f.slots[i]
	atomic.StoreUint64(&s.low, 0)
	atomic.StoreUint64(&s.high, high)
	atomic.StoreUint64(&s.low, low)
}

// SetExtra sets where the runtime keeps what it knows of the thread (its Thread object),
// and how many bytes of that are copied with a stack on which a return address is hijacked:
// the true one stands there.
func (f *File) SetExtra(i int, addr uint64, size uint32) {
	s := &f.slots[i]
	atomic.StoreUint64(&s.extra, 0)
	atomic.StoreUint32(&s.extraSize, size)
	atomic.StoreUint64(&s.extra, addr)
}

// Armed reports whether a thread has its timer, and the error if it could not get
// one. Base is its fs base, where the C library keeps the thread itself; 0 before it
// was armed.
func (f *File) Armed(i int) (armed bool, err unix.Errno, base uint64) {
	s := &f.slots[i]
	return atomic.LoadUint32(&s.timer) != 0, unix.Errno(atomic.LoadUint32(&s.error)), atomic.LoadUint64(&s.fs)
}

// Answered reports whether the thread has done what it was asked.
func (f *File) Answered(i int) bool {
	s := &f.slots[i]
	return atomic.LoadUint32(&s.ask) == atomic.LoadUint32(&s.answered)
}

// siginfo is the kernel's of rt_tgsigqueueinfo.
type siginfo struct {
	signo, errno, code, _ int32
	pid, uid              int32
	value                 uint64
	_                     [96]byte
}

const siQueue = -1

// Ask sends a thread a signal that makes it do op. The error is a unix.Errno: EAGAIN if
// the target has as many signals queued as it may, ESRCH if the thread has ended.
func (f *File) Ask(i int, op Op, sig int) error {
	s := &f.slots[i]
	atomic.StoreUint32(&s.op, uint32(op))
	if f.Answered(i) {
		atomic.AddUint32(&s.ask, 1)
	}
	switch sig {
	case int(f.h.realTime):
		atomic.StoreUint32(&f.h.realSent, 1)
	case int(f.h.relay):
		atomic.AddUint32(&f.h.relaySent, 1)
	}
	info := siginfo{signo: int32(sig), code: siQueue, pid: int32(unix.Getpid()), uid: int32(unix.Getuid()),
		value: uint64(f.h.tag)<<32 | uint64(i)}
	_, _, e := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(f.pid), uintptr(f.outer(s.tid)), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0)
	if e != 0 {
		if sig == int(f.h.relay) {
			atomic.AddUint32(&f.h.relaySent, ^uint32(0))
		}
		return e
	}
	return nil
}

// UseRealTime gives SIGURG up, which somebody else's handler takes: timers armed
// from now on send the real-time signal. False if there is none.
func (f *File) UseRealTime() bool {
	if f.h.realTime == 0 {
		return false
	}
	atomic.StoreUint32(&f.h.timerSignal, f.h.realTime)
	return true
}

// End has whatever thread takes the next signal of ours put everything back.
func (f *File) End() { atomic.StoreUint32(&f.h.ending, 1) }

// Left reports whether the probe has put everything back.
func (f *File) Left() bool { return atomic.LoadUint32(&f.h.left) == left }
