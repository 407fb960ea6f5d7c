package session

import (
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// threadName returns the system's name of a thread.
func threadName(pid int, tid uint64) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	return strings.TrimSpace(string(b))
}

// images reads the current mappings of a process.
func images(n *waits.Names, pid int) {
	if f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		defer f.Close()
		ReadMaps(n, f, "")
	}
}
