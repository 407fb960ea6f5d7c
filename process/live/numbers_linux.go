package live

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Numbers translates the thread numbers of a process: in its own pid namespace, its threads have other
// numbers than here.
type Numbers struct {
	pid     int
	foreign bool
	outer   map[uint32]uint32
	inner   map[uint32]uint32
}

// Foreign reports whether the process has its own numbers.
func (n *Numbers) Foreign() bool { return n.foreign }

// Inner returns the id that the process itself uses for our thread id outer. It returns false if the thread
// is not one of the process.
func (n *Numbers) Inner(outer uint32) (uint32, bool) {
	if !n.foreign {
		return outer, true
	}
	tid, ok := n.inner[outer]
	if !ok {
		n.Refresh()
		tid, ok = n.inner[outer]
	}
	return tid, ok
}

// NumbersOf prepares the translation for a process.
func NumbersOf(pid int) *Numbers {
	theirs, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	ours, err2 := os.Readlink("/proc/self/ns/pid")
	n := &Numbers{pid: pid, foreign: err1 == nil && err2 == nil && theirs != ours}
	n.Refresh()
	return n
}

// maxEnded bounds the threads that Outer knows although they have ended.
const maxEnded = 1 << 16

// Refresh reads the list of threads again. Outer still knows the threads that have ended since the last list,
// until others have their numbers: their last samples may not be read yet.
func (n *Numbers) Refresh() {
	if !n.foreign {
		return
	}
	if n.inner = map[uint32]uint32{}; n.outer == nil || len(n.outer) > maxEnded {
		n.outer = map[uint32]uint32{}
	}
	all, _ := Threads(n.pid)
	for _, tid := range all {
		ids := strings.Fields(statusField(tid, "NSpid"))
		if len(ids) == 0 {
			continue
		}
		if inner, err := strconv.ParseUint(ids[len(ids)-1], 10, 31); err == nil {
			n.outer[uint32(inner)], n.inner[uint32(tid)] = uint32(tid), uint32(inner)
		}
	}
}

// Outer returns our number of the thread that the process calls inner; false if it has no such thread.
func (n *Numbers) Outer(inner uint32) (uint32, bool) {
	if n.foreign {
		tid, ok := n.outer[inner]
		return tid, ok
	}
	_, err := os.Lstat(fmt.Sprintf("/proc/%d/task/%d", n.pid, inner))
	return inner, err == nil
}
