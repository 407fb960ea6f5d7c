package procstat

import "golang.org/x/sys/unix"

// CPUTime returns the CPU time of a process in nanoseconds, by its CPU clock
// (clock_getcpuclockid(3)). It returns false if the process has none.
func CPUTime(pid int) (nanos int64, ok bool) {
	const scheduled = 2 // CPUCLOCK_SCHED: a process's clock has the complement of its number
	var t unix.Timespec
	ok = unix.ClockGettime(int32(^pid)<<3|scheduled, &t) == nil
	return t.Nano(), ok
}

// ReadFile is os.ReadFile for small files of /proc, with four system calls instead of ten.
func ReadFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for b := make([]byte, 0, 1024); ; {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if n <= 0 || err != nil {
			return b, err
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
