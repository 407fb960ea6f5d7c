package session

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/process/live"
)

// threadNames finds the system's names of a process's threads.
type threadNames struct {
	pid     int
	numbers *live.Numbers
	next    time.Time // the earliest time of the next reading of numbers
}

func newThreadNames(pid int) *threadNames {
	return &threadNames{pid: pid, numbers: live.NumbersOf(pid)}
}

// name returns the name of a thread, by its number in the process's own PID namespace.
func (t *threadNames) name(tid uint64) string {
	outer, ok := t.numbers.Outer(uint32(tid))
	if begin := time.Now(); !ok && begin.After(t.next) { // all threads are read: at most a tenth of the time
		t.numbers.Refresh()
		t.next = time.Now().Add(9 * time.Since(begin))
		outer, ok = t.numbers.Outer(uint32(tid))
	}
	if !ok {
		return ""
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", t.pid, outer))
	return strings.TrimSpace(string(b))
}

// isInode reports whether the file at path has the given inode. Inode 0 is unknown, so every file fits.
func isInode(path string, inode uint64) bool {
	var st unix.Stat_t
	return inode == 0 || unix.Stat(path, &st) == nil && st.Ino == inode
}

// images reads the current mappings of a process. If the process is in a container, images also reads the
// symbols of its files: they cannot be reached after the process's end.
func images(n *waits.Names, pid int) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	f, err := os.Open(proc + "maps")
	if err != nil {
		return
	}
	defer f.Close()
	mapped, _ := parseMaps(f)
	addImages(n, mapped, newNativeNames("", proc+"root"))
	theirs, _ := os.Readlink(proc + "ns/mnt")
	if ours, _ := os.Readlink("/proc/self/ns/mnt"); theirs != ours {
		for i := range mapped {
			n.Frame(mapped[i].Start+1, 0)
		}
	}
}
