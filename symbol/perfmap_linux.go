package symbol

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/internal/procstat"
)

// openPerfMap opens the perf map of a process in the process's own file system; nil if there is none that can
// be trusted. The process and its /tmp may be hostile: links are not followed, the file must be a regular
// file of the process's user or of root, and not older than the process.
func openPerfMap(pid int) openFile {
	inner, user, ok := identity(pid)
	if !ok {
		return nil
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(root)
	return openOwned(root, inner, user, startOf(pid))
}

// openOwned opens tmp/perf-PID.map below root.
func openOwned(root, pid int, user uint32, started time.Time) openFile {
	tmp, err := unix.Openat(root, "tmp", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(tmp)
	// O_PATH does not open a device or a pipe.
	fd, err := unix.Openat(tmp, fmt.Sprintf("perf-%d.map", pid),
		unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != user && st.Uid != 0 {
		return nil
	}
	if time.Unix(st.Mtim.Unix()).Before(started) {
		return nil
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil
	}
	return ownedFile{f}
}

// ownedFile is an open regular file.
type ownedFile struct{ *os.File }

func (f ownedFile) stat() (size int64, modified time.Time, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, modified, err
	}
	return info.Size(), info.ModTime(), nil
}

// identity returns the process's own PID in its namespace, and its effective user here.
func identity(pid int) (inner int, user uint32, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, false
	}
	inner = pid
	for _, line := range strings.Split(string(b), "\n") {
		key, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		switch {
		case key == "Uid" && len(fields) == 4:
			n, err := strconv.ParseUint(fields[1], 10, 32)
			user, ok = uint32(n), err == nil
		case key == "NSpid" && len(fields) > 0:
			if n, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				inner = n
			}
		}
	}
	return inner, user, ok
}

// startOf returns when a process started, minus two seconds, since the kernel counts in ticks and file
// systems have a coarse clock. It is zero if unknown.
func startOf(pid int) time.Time {
	stat := procstat.Read(pid)
	var now unix.Timespec
	if stat.Field(procstat.Start) == "" || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Time{}
	}
	age := time.Duration(now.Nano()) - time.Duration(stat.Number(procstat.Start)*procstat.Tick)
	return time.Now().Add(-age - 2*time.Second)
}
