package threads

import (
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Files reads what the kernel says of a process's threads, in files below
// /proc/PID/task. It counts its calls of the kernel: threads that sleep cost little but
// these.
type Files struct {
	PID        int
	Dir        int // /proc/PID/task, -1 = it could not be opened
	Calls      uint64
	places     int       // syscall files that are open
	mostPlaces int       // at a time: of threads that sleep none is needed
	states     int       // stat files that are open
	Buf        [512]byte // of one file
	names      []byte    // of a listing
}

// listingRoom holds the names of two thousand threads: a listing in several pieces may
// miss some that have not ended, where others end between the pieces.
const listingRoom = 64 << 10

func OpenFiles(pid int) Files {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		dir = -1
	}
	return Files{PID: pid, Dir: dir, mostPlaces: MayOpen(4, 256)}
}

// Close closes the folder and what is open of the threads'.
func (f *Files) Close(tasks map[uint32]*Task) {
	for _, t := range tasks {
		f.Shut(t)
	}
	if f.Dir >= 0 {
		unix.Close(f.Dir)
	}
}

// open opens a thread's file.
func (f *Files) open(tid uint32, name string) (fd int, err error) {
	f.Calls++
	return unix.Openat(f.Dir, strconv.FormatUint(uint64(tid), 10)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// Read reads the beginning of a thread's file. The bytes are good until the next call.
func (f *Files) Read(tid uint32, name string) ([]byte, error) {
	fd, err := f.open(tid, name)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, f.Buf[:])
	unix.Close(fd)
	f.Calls += 2
	return f.Buf[:max(n, 0)], err
}

// Counters reads the schedstat of a thread; false if it has ended.
func (f *Files) Counters(t *Task) (Counters, bool) {
	if t.Stat < 0 {
		b, err := f.Read(t.TID, "schedstat")
		if err != nil {
			return Counters{}, false
		}
		return parseCounters(b)
	}
	f.Calls++
	n, err := unix.Pread(t.Stat, f.Buf[:], 0)
	if err != nil || n <= 0 {
		return Counters{}, false
	}
	return parseCounters(f.Buf[:n])
}

// Where reports whether a thread is blocked, and if so at which sp and ip.
func (f *Files) Where(tid uint32) (w Where, sp, ip uint64) {
	b, err := f.Read(tid, "syscall")
	if err != nil {
		return whereOf(err), 0, 0
	}
	return parseWhere(b)
}

// WhereIs is where of a thread that is asked often, whose file is kept open.
func (f *Files) WhereIs(t *Task) (w Where, sp, ip uint64) {
	if t.Place < 0 {
		if f.places >= f.mostPlaces {
			return f.Where(t.TID)
		}
		fd, err := f.open(t.TID, "syscall")
		if err != nil {
			return whereOf(err), 0, 0
		}
		f.places++
		t.Place = fd
	}
	f.Calls++
	n, err := unix.Pread(t.Place, f.Buf[:], 0)
	if err != nil {
		return whereOf(err), 0, 0
	}
	return parseWhere(f.Buf[:max(n, 0)])
}

// Signals are a thread's masks; false if it has ended.
func (f *Files) Signals(tid uint32) (s signals, ok bool) {
	fd, err := f.open(tid, "status")
	if err != nil {
		return s, false
	}
	f.Calls += 2
	var b [2048]byte
	n, err := unix.Read(fd, b[:])
	unix.Close(fd)
	if s, ok = parseSignals(b[:max(n, 0)]); ok || err != nil {
		return s, ok
	}
	all, _ := os.ReadFile(Path(strconv.Itoa(f.PID), tid, "status")) // who is in many groups has a long one
	return parseSignals(all)
}

// Shut closes what is open of a thread.
func (f *Files) Shut(t *Task) {
	if t.Stat >= 0 {
		unix.Close(t.Stat)
	}
	if t.Place >= 0 {
		unix.Close(t.Place)
		f.places--
	}
	if t.StateFile > 0 {
		unix.Close(t.StateFile - 1)
		f.states--
	}
	t.Stat, t.Place, t.StateFile = -1, -1, 0
}

// Comm is the kernel's name of a thread, "" if it has ended.
func (f *Files) Comm(tid uint32) string {
	b, err := f.Read(tid, "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// links tells how many threads there are, but for a constant.
func (f *Files) links() (uint64, bool) {
	var st unix.Stat_t
	f.Calls++
	err := unix.Fstat(f.Dir, &st)
	return uint64(st.Nlink), err == nil // of another size on other machines
}

// Ran is the processor time of all threads that the process has and had. While it stays
// the same none of them has run: none has come or ended or has another name. Of one that
// runs now it is as of the kernel's last tick.
func (f *Files) Ran() (nanos int64, ok bool) {
	const scheduled = 2 // CPUCLOCK_SCHED: a process's clock is named by its number's complement
	var t unix.Timespec
	f.Calls++
	// Raw: it does not wait, and Go's monitor sleeps on.
	if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(int32(^f.PID)<<3|scheduled), uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		return 0, false
	}
	return t.Nano(), true
}

// RanNow is ran, -1 if that is not known.
func (f *Files) RanNow() int64 {
	if ran, ok := f.Ran(); ok {
		return ran
	}
	return -1
}

// list gives each thread to g, and reports whether these are all.
func (f *Files) list(g func(tid uint32)) bool {
	if f.names == nil {
		f.names = make([]byte, listingRoom)
	}
	f.Calls++
	if _, err := unix.Seek(f.Dir, 0, io.SeekStart); err != nil {
		return false
	}
	for {
		f.Calls++
		n, err := unix.Getdents(f.Dir, f.names)
		if err != nil || n == 0 {
			return err == nil
		}
		if !entries(f.names[:n], g) {
			return false
		}
	}
}

// entries gives the numbers among a directory's entries to g. False: that is none.
//
// Source: struct linux_dirent64 of getdents(2): inode, offset, size, type, name.
func entries(b []byte, g func(n uint32)) bool {
	const sizeAt, nameAt = 16, 19
	for len(b) > nameAt {
		size := int(binary.NativeEndian.Uint16(b[sizeAt:]))
		if size <= nameAt || size > len(b) {
			return false
		}
		if n, ok := leadingNumber(b[nameAt:size]); ok {
			g(n)
		}
		b = b[size:]
	}
	return len(b) == 0
}

// leadingNumber is the number that is a name, which ends with a zero.
func leadingNumber(name []byte) (n uint32, ok bool) {
	for i, c := range name {
		switch {
		case c == 0:
			return n, i > 0
		case c < '0' || c > '9' || i > 9:
			return 0, false
		}
		n = n*10 + uint32(c-'0')
	}
	return 0, false
}

// MayOpen is how many files of one kind are kept open: a share of what the kernel allows,
// at most so many.
func MayOpen(share, most uint64) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur/share, most))
}

// Runs reports whether the kernel calls a thread runnable (state R of proc(5), stat).
func (f *Files) Runs(t *Task) bool {
	if t.StateFile == 0 {
		fd, err := f.open(t.TID, "stat")
		if err != nil {
			return false
		}
		if f.states >= maxStates {
			defer unix.Close(fd)
			return f.Running(fd)
		}
		f.states++
		t.StateFile = fd + 1
	}
	return f.Running(t.StateFile - 1)
}

// maxStates bounds the stat files that are kept open.
const maxStates = 1024

func (f *Files) Running(fd int) bool {
	f.Calls++
	n, err := unix.Pread(fd, f.Buf[:], 0)
	if err != nil {
		return false
	}
	return State(f.Buf[:n]) == 'R'
}
