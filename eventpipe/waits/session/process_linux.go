package session

import (
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/process/live"
)

// threadName returns the system's name of the thread that a process calls tid.
func threadName(pid int, tid uint64) string {
	outer, ok := live.NumbersOf(pid).Outer(uint32(tid))
	if !ok {
		return ""
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, outer))
	return strings.TrimSpace(string(b))
}

// images reads the current mappings of a process.
func images(n *waits.Names, pid int) {
	if f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		defer f.Close()
		ReadMaps(n, f, "")
	}
}
