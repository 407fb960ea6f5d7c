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

// Files reads the kernel's files below /proc/PID/task. It counts its system calls, which are most of the cost
// of sleeping threads.
type Files struct {
	PID        int
	Dir        int // descriptor of /proc/PID/task, -1 = it could not be opened
	Calls      uint64
	places     int       // open syscall files
	mostPlaces int       // limit of open syscall files; a poll of a resting thread reads none
	states     int       // open stat files
	Buf        [512]byte // contents of one file
	names      []byte    // of a listing
}

// listingRoom holds the names of two thousand threads.
const listingRoom = 64 << 10

func OpenFiles(pid int) Files {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task",
		unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		dir = -1
	}
	return Files{PID: pid, Dir: dir, mostPlaces: MayOpen(4, 256)}
}

// Close closes the folder and the files of all threads.
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

// Read reads the beginning of a thread's file. The bytes are valid until the next call.
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

// Counters reads the schedstat of a thread. It returns false if the thread has ended.
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

// WhereIs is Where for a thread that is read often. It keeps the file open, and sets t.Call.
func (f *Files) WhereIs(t *Task) (w Where, sp, ip uint64) {
	if t.Place < 0 {
		if f.places >= f.mostPlaces {
			t.Call = -1
			w, sp, ip := f.Where(t.TID)
			if w == Blocked {
				t.Call = parseCall(f.Buf[:])
			}
			return w, sp, ip
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
	t.Call = parseCall(f.Buf[:max(n, 0)])
	return parseWhere(f.Buf[:max(n, 0)])
}

// Signals returns a thread's masks, false if the thread has ended.
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
	// the file is long for a user in many groups
	all, _ := os.ReadFile(Path(strconv.Itoa(f.PID), tid, "status"))
	return parseSignals(all)
}

// Waits returns how often a thread has waited, 0 if it has ended.
func (f *Files) Waits(tid uint32) uint64 {
	f.Calls += 3
	all, _ := os.ReadFile(Path(strconv.Itoa(f.PID), tid, "status"))
	n, _ := numberIn(all, "\nvoluntary_ctxt_switches:", 10)
	return n
}

// Shut closes the open files of a thread.
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

// Comm returns the kernel's name of a thread, "" if it has ended.
func (f *Files) Comm(tid uint32) string {
	b, err := f.Read(tid, "comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// links returns the number of threads plus a constant, and false if it is unknown.
func (f *Files) links() (uint64, bool) {
	var st unix.Stat_t
	f.Calls++
	err := unix.Fstat(f.Dir, &st)
	return uint64(st.Nlink), err == nil // Nlink has another type on other machines
}

// Ran returns the CPU time of all threads, past and present. While it does not change, no thread has
// run, started, ended, or changed its name. The time of a running thread is as of the kernel's last tick.
func (f *Files) Ran() (nanos int64, ok bool) {
	const scheduled = 2 // CPUCLOCK_SCHED: a process's clock has the complement of its number
	var t unix.Timespec
	f.Calls++
	// Raw: the call does not block, so Go's monitor can stay asleep.
	if _, _, e := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(int32(^f.PID)<<3|scheduled),
		uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		return 0, false
	}
	return t.Nano(), true
}

// RanNow is Ran with -1 if the time is unknown.
func (f *Files) RanNow() int64 {
	if ran, ok := f.Ran(); ok {
		return ran
	}
	return -1
}

// list calls g for each thread, and reports whether it read the list to its end. The list may lack living
// threads if others end meanwhile: the kernel writes it in pieces, and finds the start of the next piece by
// the number of threads that it has already listed. If one of these has ended since, a living one is skipped.
// In a program that starts 6,000 threads a second, 50 of 67,440 listings lacked a thread.
//
// Source: Linux 6.18, proc_task_readdir and next_tid in fs/proc/base.c.
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

// entries calls g for each number among a directory's entries. It returns false if b is malformed.
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

// leadingNumber returns the number that a zero-terminated name consists of.
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

// MayOpen returns how many files of one kind to keep open: the kernel's limit divided by share, at most
// most. It returns 0 if the limit is unknown.
func MayOpen(share, most uint64) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur/share, most))
}

// Runs reports whether the kernel calls a thread runnable (state R in stat, proc(5)). It sets Ended if the
// thread has ended.
func (f *Files) Runs(t *Task) bool {
	fd := t.StateFile - 1
	if fd < 0 {
		opened, err := f.open(t.TID, "stat")
		if err != nil {
			t.Ended = err == unix.ENOENT
			return false
		}
		if fd = opened; f.states < maxStates {
			f.states++
			t.StateFile = fd + 1
		} else {
			defer unix.Close(fd)
		}
	}
	f.Calls++
	n, err := unix.Pread(fd, f.Buf[:], 0)
	if err != nil {
		t.Ended = err == unix.ESRCH
		return false
	}
	return State(f.Buf[:n]) == 'R'
}

// maxStates bounds the stat files that are kept open.
const maxStates = 1024
