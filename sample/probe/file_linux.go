package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
)

// File is the memory shared with one probe. Only Beat may be called by another goroutine.
type File struct {
	reader
	data  []byte
	arch  context.Arch // of the target; kept here because the target can change the file
	slots []slot
	waits []waiter
	types []droppedType
	pid   int              // as numbered in this process's namespace
	dead  []int32          // slots of ended threads that still have a timer
	used  map[uint32]int32 // slot of a thread

	numbers Numbers           // of the target's threads; nil = the same as ours
	unknown map[uint32]uint64 // when a number was looked for that no thread has
}

// Numbers translates between our thread numbers and the target's own. The file contains the target's.
type Numbers interface {
	Inner(outer uint32) (inner uint32, ok bool)
	Outer(inner uint32) (outer uint32, ok bool)
	Refresh()
}

// SetNumbers sets how the target numbers its threads.
func (f *File) SetNumbers(n Numbers) { f.numbers = n }

// outer returns our number of the thread that the target calls tid, or 0.
func (f *File) outer(tid uint32) uint32 {
	if f.numbers == nil || tid == 0 {
		return tid
	}
	ours, ok := f.numbers.Outer(tid)
	if ok {
		return ours
	}
	now := Clock()
	if now-f.unknown[tid] < uint64(unknownFor) {
		return 0
	}
	f.numbers.Refresh()
	if ours, ok = f.numbers.Outer(tid); !ok {
		if f.unknown == nil || len(f.unknown) >= maxUnknown {
			f.unknown = map[uint32]uint64{}
		}
		f.unknown[tid] = now
	}
	return ours
}

// If no thread has a number, it is looked for again only after unknownFor, because the search reads files of
// all threads. Each event about a lock whose owner has ended has such a number. A new thread may get it.
const (
	unknownFor = time.Second
	maxUnknown = 1 << 16
)

// inner returns the target's number of a thread, 0 if it is not the target's.
func (f *File) inner(tid uint32) uint32 {
	if f.numbers == nil {
		return tid
	}
	theirs, _ := f.numbers.Inner(tid)
	return theirs
}

// Open maps the file that a probe in process pid sent.
func Open(fd, pid int) (*File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size != FullSize {
		return nil, fmt.Errorf("the probe's file has %d bytes, not %d: it is of another version",
			st.Size, FullSize)
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
	f.freed = f.tail
	f.ahead = monotonic(fmt.Sprintf("/proc/%d", pid)) - monotonic("/proc/self")
	f.Beat()
	return f, nil
}

// Greeted returns the file that came with a probe's greeting. It returns -1 and no error for a greeting
// without a file, which asks what to load, and ErrNoGreeting for other bytes.
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

// ErrNoGreeting means that the bytes are not a probe's greeting.
var ErrNoGreeting = errors.New("no greeting of a probe")

var errNoFile = errors.New("the probe sent no file")

// Arch returns the target's architecture.
func (f *File) Arch() context.Arch { return f.arch }

// Close unmaps the file.
func (f *File) Close() error { return unix.Munmap(f.data) }

// Read calls g for every available record.
func (f *File) Read(g func(*Record)) {
	if f.numbers == nil && f.ahead == 0 {
		f.read(g)
		return
	}
	f.read(func(r *Record) {
		r.Time -= f.ahead
		if r.Why == Event && r.Event != AskedCopy && r.Since != 0 {
			r.Since -= f.ahead
		}
		if r.TID = f.outer(r.TID); r.TID != 0 {
			g(r)
		}
	})
}

// monotonic returns the offset of CLOCK_MONOTONIC in the time namespace of a process, in nanoseconds
// (time_namespaces(7)).
func monotonic(proc string) uint64 {
	text, _ := os.ReadFile(proc + "/timens_offsets")
	var seconds, nanos int64
	if _, rest, ok := strings.Cut(string(text), "monotonic"); ok {
		fmt.Sscan(rest, &seconds, &nanos)
	}
	return uint64(seconds*int64(time.Second) + nanos)
}

// Clock returns the time by the probe's clock, in nanoseconds.
func Clock() uint64 {
	var t unix.Timespec
	// a raw call, so Go's monitor can stay asleep
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Nano())
}

// World returns the offset from the probe's clock to nanoseconds since 1970.
func World() int64 { return time.Now().UnixNano() - int64(Clock()) }

// wake wakes the probe's own thread.
func (f *File) wake() {
	const wake = 1
	unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&f.h.leave)), wake, 1)
}

// SetTimerKeep makes keep of Thinning expiries of a timer samples, chosen at random, each of weight 1. With 0
// all are, of weight 1 + overrun.
func (f *File) SetTimerKeep(keep uint32) { atomic.StoreUint32(&f.h.timerKeep, keep) }

// SetPeriod sets the period of timers armed from now on, in nanoseconds of a thread's
// CPU time.
func (f *File) SetPeriod(nanos uint64) { atomic.StoreUint64(&f.h.period, nanos) }

// Where returns the address of the header in the target, and the tag in it. After an exec the header is gone.
func (f *File) Where() (base uint64, tag uint32) { return f.h.base, f.h.tag }

// Stats are the probe's counters.
type Stats struct {
	Signals   uint64 // runs of its handler
	Dropped   uint64 // samples for which the ring was full
	Strangers uint64 // signals from other senders
	Timers    uint64 // currently armed
	Stopped   uint64 // timers stopped because the tool was gone
	Nanos     uint64 // total time in the handler
}

// Stats reads the counters one by one.
func (f *File) Stats() Stats {
	h := f.h
	return Stats{atomic.LoadUint64(&h.signals), atomic.LoadUint64(&h.dropped),
		atomic.LoadUint64(&h.strangers),
		atomic.LoadUint64(&h.timers), atomic.LoadUint64(&h.stopped), atomic.LoadUint64(&h.nanos)}
}

// Relay returns the signal that unblocks a thread whose mask blocks only our signals, as a handler of
// the runtime that never returned leaves it. It returns false for any other mask, or if there is no
// such signal. sig does not depend on the mask; it is 0 if there is no such signal.
func (f *File) Relay(blocked uint64) (sig int, ok bool) {
	ours := bit(f.h.legacy) | bit(f.h.realTime)
	return int(f.h.relay), f.h.relay != 0 && blocked != 0 && blocked&^ours == 0
}

// bit returns a signal's bit in a mask, 0 for no signal.
func bit(sig uint32) uint64 {
	if sig == 0 {
		return 0
	}
	return 1 << (sig - 1)
}

// Signals returns the numbers of the probe's signals, 0 for a missing one.
func (f *File) Signals() (legacy, realTime int) { return int(f.h.legacy), int(f.h.realTime) }

// ErrFull means that every slot is taken.
var ErrFull = errors.New("more threads than the probe has slots")

// ErrGone means that the target no longer has the thread.
var ErrGone = errors.New("no thread of the process")

// Slot finds or makes the slot of a thread, near the place that the thread's number determines: the
// probe looks there if a signal has no cookie. It returns ErrGone or ErrFull if it cannot make one.
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

// Free releases the slot of an ended thread. The next thread that takes a signal deletes its timer; until
// then the slot is not reused.
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

// Reap requests the deletion of the timers of ended threads.
func (f *File) Reap() {
	rest := f.dead[:0]
	for _, i := range f.dead {
		if atomic.LoadUint32(&f.slots[i].timer) == 0 && !f.listed(i) {
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

// listed reports whether the probe may still end the timer of slot i. It would end that of the slot's next
// thread.
func (f *File) listed(i int32) bool {
	for k := range f.h.reap {
		if atomic.LoadUint32(&f.h.reap[k])&^reaped == uint32(i)+1 {
			return true
		}
	}
	return false
}

// SetStack sets the bounds of a thread's own stack, which the handler may copy without checked reads. While
// a slot has the same thread, high must stay the same. SetStack stores high before low, and the handler
// loads low before high. So when the handler loads a new low, the high that it loads next belongs to it.
func (f *File) SetStack(i int, low, high uint64) {
	s := &f.slots[i]
	atomic.StoreUint64(&s.high, high)
	atomic.StoreUint64(&s.low, low)
}

// SetExtra sets the address of the thread's Thread object in the runtime. The handler copies the object's
// first bytes together with a stack that has a hijacked return address. The object holds the true return
// address. The size is stored first and never changes, so a handler that runs between the two stores sees the
// old address with the right size.
func (f *File) SetExtra(i int, addr uint64) {
	s := &f.slots[i]
	atomic.StoreUint32(&s.extraSize, uint32(f.form.extra))
	atomic.StoreUint64(&s.extra, addr)
}

// Armed reports whether a thread has its timer, and why it got none. base is the address of the C
// library's data of the thread; 0 before the thread has taken a signal.
func (f *File) Armed(i int) (armed bool, err unix.Errno, base uint64) {
	s := &f.slots[i]
	return atomic.LoadUint32(&s.timer) != 0, unix.Errno(atomic.LoadUint32(&s.error)), atomic.LoadUint64(&s.fs)
}

// Answered reports whether the thread has handled its request.
func (f *File) Answered(i int) bool {
	s := &f.slots[i]
	return atomic.LoadUint32(&s.ask) == atomic.LoadUint32(&s.answered)
}

// siginfo mirrors the kernel's, for rt_tgsigqueueinfo.
type siginfo struct {
	signo, errno, code, _ int32
	pid, uid              int32
	value                 uint64
	_                     [96]byte
}

const siQueue = -1

// Ask sends a thread a signal that makes it do op. The error is a unix.Errno: EAGAIN if the target's queue of
// signals is full, ESRCH if the thread or the recording has ended.
func (f *File) Ask(i int, op Op, sig int) error {
	s := &f.slots[i]
	atomic.StoreUint32(&s.op, uint32(op))
	if f.Answered(i) {
		atomic.AddUint32(&s.ask, 1)
	}
	return f.send(f.outer(s.tid), sig, uint64(i))
}

// send sends a thread one of the probe's signals, with a value for its handler.
func (f *File) send(tid uint32, sig int, value uint64) error {
	switch sig {
	case int(f.h.realTime):
		atomic.StoreUint32(&f.h.realSent, 1)
	case int(f.h.relay):
		atomic.AddUint32(&f.h.relaySent, 1)
	}
	// From here on, the probe keeps its handlers for these two signals. If the recording ended before,
	// the signal may have its default action, which ends the process.
	if atomic.LoadUint32(&f.h.left) != 0 {
		f.unsent(sig)
		return unix.ESRCH
	}
	info := siginfo{signo: int32(sig), code: siQueue, pid: int32(unix.Getpid()), uid: int32(unix.Getuid()),
		value: uint64(f.h.tag)<<32 | value}
	_, _, e := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(f.pid), uintptr(tid), uintptr(sig),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if e != 0 {
		f.unsent(sig)
		return e
	}
	return nil
}

// unsent takes back the count of a signal that was not sent.
func (f *File) unsent(sig int) {
	if sig == int(f.h.relay) {
		atomic.AddUint32(&f.h.relaySent, ^uint32(0))
	}
}

// UseRealTime stops using SIGURG because another handler takes it: timers armed from now on send the
// real-time signal. It returns false if none is free.
func (f *File) UseRealTime() bool {
	if f.h.realTime == 0 {
		return false
	}
	atomic.StoreUint32(&f.h.timerSignal, f.h.realTime)
	return true
}

// Chained reports whether another handler of SIGURG has called the probe's.
func (f *File) Chained() bool { return atomic.LoadUint32(&f.h.chained) == 1 }

// End makes the first thread that takes one of our signals restore everything.
func (f *File) End() {
	f.Hold(false)
	atomic.StoreUint32(&f.h.ending, 1)
}

// Hold sets whether the process waits, up to a second, when it exits: the tool holds samples that it can walk
// only while the process lives.
func (f *File) Hold(on bool) {
	hold := uint32(0)
	if on {
		hold = 1
	}
	atomic.StoreUint32(&f.h.hold, hold)
}

// Left reports whether the probe has restored everything.
func (f *File) Left() bool { return atomic.LoadUint32(&f.h.left) == left }
