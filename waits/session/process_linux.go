package session

import (
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/waits"
)

// threadName is what the system calls a thread.
func threadName(pid int, tid uint64) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	return strings.TrimSpace(string(b))
}

// images learns what is mapped in a process now.
func images(n *waits.Names, pid int) {
	if f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		defer f.Close()
		ReadMaps(n, f, "")
	}
}
