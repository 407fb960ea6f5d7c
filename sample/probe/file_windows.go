package probe

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context"
)

// slack is room behind the ring for the longest record, so that no record wraps around.
const (
	slack       = 1 << 20
	sectionSize = FileSize + slack
)

// stale is how long the tool may be silent.
const stale = 2 * time.Second

// File is the section shared with one process, for events and copies. Only Beat may be called by another
// goroutine.
type File struct {
	reader
	Name    string // of the section, for the process's environment
	section windows.Handle
	data    []byte
	waits   []waiter
	types   []droppedType
}

var (
	frequency   = ask("QueryPerformanceFrequency")
	counter     = windows.NewLazySystemDLL("kernel32.dll").NewProc("QueryPerformanceCounter")
	files       atomic.Uint32
	mapViewMode = uint32(windows.FILE_MAP_READ | windows.FILE_MAP_WRITE)
)

func ask(name string) (v uint64) {
	windows.NewLazySystemDLL("kernel32.dll").NewProc(name).Call(uintptr(unsafe.Pointer(&v)))
	return v
}

// Clock returns the time by the probe's clock, in nanoseconds.
func Clock() uint64 {
	var t uint64
	counter.Call(uintptr(unsafe.Pointer(&t)))
	return t/frequency*1e9 + t%frequency*1e9/frequency
}

// World returns the offset from the probe's clock to nanoseconds since 1970. It uses the precise clock; the
// usual one advances in steps of many milliseconds.
func World() int64 {
	var now windows.Filetime
	windows.GetSystemTimePreciseAsFileTime(&now)
	return now.Nanoseconds() - int64(Clock())
}

// Make makes a section for the first process that opens it.
func Make() (*File, error) {
	f := &File{Name: fmt.Sprintf(`Local\seedwalk-%d-%d-%x`, os.Getpid(), files.Add(1), Clock())}
	name, err := windows.UTF16PtrFromString(f.Name)
	if err != nil {
		return nil, err
	}
	if f.section, err = windows.CreateFileMapping(windows.InvalidHandle, nil,
		windows.PAGE_READWRITE, 0, sectionSize, name); err != nil {
		return nil, fmt.Errorf("no memory to share: %w", err)
	}
	if err = f.open(); err != nil {
		return nil, err
	}
	f.h.version, f.h.stale, f.h.arch = Version, uint64(stale), uint32(context.ArchAMD64)
	f.Beat()
	atomic.StoreUint64(&f.h.magic, Magic)
	return f, nil
}

// Inherited opens the section that a client library made, and whose handle this process has inherited.
func Inherited(section windows.Handle) (*File, error) {
	f := &File{section: section}
	if err := f.open(); err != nil {
		return nil, err
	}
	if f.h.magic != Magic || f.h.version != Version || f.h.arch != uint32(context.ArchAMD64) {
		f.Close()
		return nil, errors.New("the client library has another version than this tool")
	}
	f.tail = atomic.LoadUint64(&f.h.tail) &^ (align - 1) // the section may have records of an earlier helper
	f.freed = f.tail
	f.Beat()
	return f, nil
}

// open maps the section, and closes it if that fails.
func (f *File) open() error {
	at, err := windows.MapViewOfFile(f.section, mapViewMode, 0, 0, sectionSize)
	if err != nil {
		windows.CloseHandle(f.section)
		return fmt.Errorf("no memory to share: %w", err)
	}
	f.data = unsafe.Slice((*byte)(pointer(at)), sectionSize)
	f.h = (*header)(unsafe.Pointer(&f.data[0]))
	f.waits = unsafe.Slice((*waiter)(unsafe.Pointer(&f.data[HeaderSize+Slots*SlotSize])), Waiters)
	f.types = unsafe.Slice((*droppedType)(unsafe.Pointer(&f.data[typesAt])), types)
	f.ring = f.data[beforeRing:]
	f.done = map[uint64]uint64{}
	f.form = formats[context.ArchAMD64]
	return nil
}

// pointer converts an address from the system, which is not one of Go's.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Close closes the section.
func (f *File) Close() error {
	err := windows.UnmapViewOfFile(uintptr(unsafe.Pointer(&f.data[0])))
	windows.CloseHandle(f.section)
	return err
}

// Owner returns the process that has opened the section, 0 if none has.
func (f *File) Owner() int { return int(atomic.LoadUint32(&f.h.pid)) }

// SetSuspended stores which thread the tool has suspended, 0 for none. If the tool dies, the client resumes
// that thread.
func (f *File) SetSuspended(tid uint32) { atomic.StoreUint32(&f.h.suspended, tid) }

// Read calls g for every available record.
func (f *File) Read(g func(*Record)) { f.read(g) }

// outer returns tid: a thread has only one number on Windows.
func (f *File) outer(tid uint32) uint32 { return tid }

// wake does nothing: the probe's own thread polls.
func (f *File) wake() {}
