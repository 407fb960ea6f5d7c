package outside

import (
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// taskFiles reads what the kernel says of a process's threads, in files below
// /proc/PID/task. It counts its calls of the kernel: threads that sleep cost little but
// these.
type taskFiles struct {
	pid        int
	dir        int // /proc/PID/task, -1 = it could not be opened
	calls      uint64
	places     int       // syscall files that are open
	mostPlaces int       // at a time: of threads that sleep none is needed
	states     int       // stat files that are open
	buf        [512]byte // of one file
	names      []byte    // of a listing
}

// listingRoom holds the names of two thousand threads: a listing in several pieces may
// miss some that have not ended, where others end between the pieces.
const listingRoom = 64 << 10

func newTaskFiles(pid int) taskFiles {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		dir = -1
	}
	return taskFiles{pid: pid, dir: dir, mostPlaces: mayOpen(4, 256)}
}

// close closes the folder and what is open of the threads'.
func (f *taskFiles) close(tasks map[uint32]*task) {
	for _, t := range tasks {
		f.shut(t)
	}
	if f.dir >= 0 {
		unix.Close(f.dir)
	}
}

// open opens a thread's file.
func (f *taskFiles) open(tid uint32, name string) (fd int, err error) {
	f.calls++
	return unix.Openat(f.dir, strconv.FormatUint(uint64(tid), 10)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// read reads the beginning of a thread's file. The bytes are good until the next call.
func (f *taskFiles) read(tid uint32, name string) ([]byte, error) {
	fd, err := f.open(tid, name)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, f.buf[:])
	unix.Close(fd)
	f.calls += 2
	return f.buf[:max(n, 0)], err
}

// counters reads the schedstat of a thread; false if it has ended.
func (f *taskFiles) counters(t *task) (counters, bool) {
	if t.stat < 0 {
		b, err := f.read(t.tid, "schedstat")
		if err != nil {
			return counters{}, false
		}
		return parseCounters(b)
	}
	f.calls++
	n, err := unix.Pread(t.stat, f.buf[:], 0)
	if err != nil || n <= 0 {
		return counters{}, false
	}
	return parseCounters(f.buf[:n])
}

// where reports whether a thread is blocked, and if so at which sp and ip.
func (f *taskFiles) where(tid uint32) (w where, sp, ip uint64) {
	b, err := f.read(tid, "syscall")
	if err != nil {
		return whereOf(err), 0, 0
	}
	return parseWhere(b)
}

// whereIs is where of a thread that is asked often, whose file is kept open.
func (f *taskFiles) whereIs(t *task) (w where, sp, ip uint64) {
	if t.place < 0 {
		if f.places >= f.mostPlaces {
			return f.where(t.tid)
		}
		fd, err := f.open(t.tid, "syscall")
		if err != nil {
			return whereOf(err), 0, 0
		}
		f.places++
		t.place = fd
	}
	f.calls++
	n, err := unix.Pread(t.place, f.buf[:], 0)
	if err != nil {
		return whereOf(err), 0, 0
	}
	return parseWhere(f.buf[:max(n, 0)])
}

// signals are a thread's masks; false if it has ended.
func (f *taskFiles) signals(tid uint32) (s signals, ok bool) {
	fd, err := f.open(tid, "status")
	if err != nil {
		return s, false
	}
	f.calls += 2
	var b [2048]byte
	n, err := unix.Read(fd, b[:])
	unix.Close(fd)
	if s, ok = parseSignals(b[:max(n, 0)]); ok || err != nil {
		return s, ok
	}
	all, _ := os.ReadFile(taskFile(strconv.Itoa(f.pid), tid, "status")) // who is in many groups has a long one
	return parseSignals(all)
}

// shut closes what is open of a thread.
func (f *taskFiles) shut(t *task) {
	if t.stat >= 0 {
		unix.Close(t.stat)
	}
	if t.place >= 0 {
		unix.Close(t.place)
		f.places--
	}
	if t.stateFile > 0 {
		unix.Close(t.stateFile - 1)
		f.states--
	}
	t.stat, t.place, t.stateFile = -1, -1, 0
}

// comm is the kernel's name of a thread, "" if it has ended.
func (f *taskFiles) comm(tid uint32) string {
	b, err := f.read(tid, "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// links tells how many threads there are, but for a constant.
func (f *taskFiles) links() (uint64, bool) {
	var st unix.Stat_t
	f.calls++
	err := unix.Fstat(f.dir, &st)
	return uint64(st.Nlink), err == nil // of another size on other machines
}

// ran is the processor time of all threads that the process has and had. While it stays
// the same none of them has run: none has come or ended or has another name. Of one that
// runs now it is as of the kernel's last tick.
func (f *taskFiles) ran() (nanos int64, ok bool) {
	const scheduled = 2 // CPUCLOCK_SCHED: a process's clock is named by its number's complement
	var t unix.Timespec
	f.calls++
	if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(int32(^f.pid)<<3|scheduled), uintptr(unsafe.Pointer(&t)), 0); e != 0 { // raw: it does not wait, and Go's monitor sleeps on
		return 0, false
	}
	return t.Nano(), true
}

// ranNow is ran, -1 if that is not known.
func (f *taskFiles) ranNow() int64 {
	if ran, ok := f.ran(); ok {
		return ran
	}
	return -1
}

// list gives each thread to g, and reports whether these are all.
func (f *taskFiles) list(g func(tid uint32)) bool {
	if f.names == nil {
		f.names = make([]byte, listingRoom)
	}
	f.calls++
	if _, err := unix.Seek(f.dir, 0, io.SeekStart); err != nil {
		return false
	}
	for {
		f.calls++
		n, err := unix.Getdents(f.dir, f.names)
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

// mayOpen is how many files of one kind are kept open: a share of what the kernel allows,
// at most so many.
func mayOpen(share, most uint64) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur/share, most))
}
