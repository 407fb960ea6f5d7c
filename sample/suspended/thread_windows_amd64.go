package suspended

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/stream"
)

// thread is an open thread of the target.
type thread struct {
	tid       uint32
	handle    windows.Handle
	name      string
	born      int64  // when it was first seen
	read      int64  // when its name was last read
	teb       uint64 // 0: unknown
	low, high uint64 // its stack; high 0: unknown
	object    uint64 // the runtime's Thread, 0 = unknown (yet)

	times     uint64 // CPU time at the last sample, nanoseconds
	cycles    uint64 // processor cycles after the last sample, 0 = unknown
	polled    int64  // time of the last poll
	due       int64  // time of the next poll
	every     int64  // nanoseconds between polls
	unsampled int64  // wall time without a sample

	rest    bool // the stack is unchanged since cycles
	stack   stream.Held
	samples uint64
}

// Functions that x/sys/windows lacks.
var (
	kernel32             = windows.NewLazySystemDLL("kernel32.dll")
	suspendThread        = kernel32.NewProc("SuspendThread")
	getThreadContext     = kernel32.NewProc("GetThreadContext")
	getThreadTimes       = kernel32.NewProc("GetThreadTimes")
	queryThreadCycleTime = kernel32.NewProc("QueryThreadCycleTime")
	getThreadDescription = kernel32.NewProc("GetThreadDescription")
	setThreadPriority    = kernel32.NewProc("SetThreadPriority")
	performanceCounter   = kernel32.NewProc("QueryPerformanceCounter")
	performanceFrequency = kernel32.NewProc("QueryPerformanceFrequency")
	queryThread          = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtQueryInformationThread")
)

const highest = 2 // THREAD_PRIORITY_HIGHEST

const threadRights = windows.THREAD_SUSPEND_RESUME | windows.THREAD_GET_CONTEXT |
	windows.THREAD_QUERY_INFORMATION

// basicInformation is THREAD_BASIC_INFORMATION of winternl.h.
type basicInformation struct {
	status            int32
	teb               uint64
	process, id       uintptr
	affinity          uintptr
	priority, basePri int32
}

// openThread opens a thread. It returns false if the thread has ended or access is denied.
func openThread(tid uint32, now int64) (*thread, bool) {
	h, err := windows.OpenThread(threadRights, false, tid)
	if err != nil {
		return nil, false
	}
	t := &thread{tid: tid, handle: h, polled: now, born: now}
	var b basicInformation
	if status, _, _ := queryThread.Call(uintptr(h), 0, uintptr(unsafe.Pointer(&b)),
		unsafe.Sizeof(b), 0); status == 0 {
		t.teb = b.teb
	}
	return t, true
}

// Offsets in every 64-bit TEB.
const (
	tebStackBase    = 0x08
	tebDeallocation = 0x1478
)

// bounds reads the bounds of the thread's stack: that of the fiber it runs.
func (e *Engine) bounds(t *thread) bool {
	high, ok1 := memory.Word(e.mem, t.teb+tebStackBase)
	low, ok2 := memory.Word(e.mem, t.teb+tebDeallocation)
	if t.teb == 0 || !ok1 || !ok2 {
		return false
	}
	t.low, t.high = low, high
	if t.low >= t.high {
		t.low, t.high = 0, 0
	}
	return t.high != 0
}

// holds reports whether sp is on the thread's known stack.
func (t *thread) holds(sp uint64) bool { return sp >= t.low && sp < t.high }

// description returns the name that the thread was given, "" if none.
func (t *thread) description() string {
	var text *uint16
	if getThreadDescription.Find() != nil {
		return "" // before Windows 10 1607
	}
	if hr, _, _ := getThreadDescription.Call(uintptr(t.handle),
		uintptr(unsafe.Pointer(&text))); int32(hr) < 0 || text == nil {
		return ""
	}
	defer windows.LocalFree(windows.Handle(unsafe.Pointer(text)))
	return windows.UTF16PtrToString(text)
}

// rename reports whether to read the name again: often for a new thread.
func (t *thread) rename(now int64) bool {
	if now-max(t.read, t.born) < max(t.read-t.born, 1e8) {
		return false
	}
	t.read = now
	return true
}

// used returns the thread's CPU time, nanoseconds.
func (t *thread) used() (uint64, bool) {
	var made, ended, kernel, user windows.Filetime
	ok, _, _ := getThreadTimes.Call(uintptr(t.handle), uintptr(unsafe.Pointer(&made)),
		uintptr(unsafe.Pointer(&ended)),
		uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user)))
	hundreds := func(f windows.Filetime) uint64 { return uint64(f.HighDateTime)<<32 | uint64(f.LowDateTime) }
	return 100 * (hundreds(kernel) + hundreds(user)), ok != 0
}

// spent returns the thread's CPU time in cycles, 0 if unknown. It advances in every run, while the
// times advance in ticks.
func (t *thread) spent() (cycles uint64) {
	if queryThreadCycleTime.Find() != nil {
		return 0
	}
	if ok, _, _ := queryThreadCycleTime.Call(uintptr(t.handle), uintptr(unsafe.Pointer(&cycles))); ok == 0 {
		return 0
	}
	return cycles
}

// ticks returns the system's finest clock.
func ticks() (n int64) {
	performanceCounter.Call(uintptr(unsafe.Pointer(&n)))
	return n
}

func tickRate() (n int64) {
	performanceFrequency.Call(uintptr(unsafe.Pointer(&n)))
	return max(n, 1)
}
