package stack

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
)

// maxSettle bounds settle, because a thread that computes does not block.
const maxSettle = 500 * time.Millisecond

// settle waits until it has seen each thread of a process blocked, at most for limit. A thread that was
// stopped for a snapshot must get a processor to continue its wait. Until then its CPU time grows without
// progress.
func settle(pid int, limit time.Duration) {
	tasks := fmt.Sprintf("/proc/%d/task/", pid)
	blocked := map[string]bool{}
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		all := true
		entries, _ := os.ReadDir(tasks)
		for _, e := range entries {
			stat, _ := os.ReadFile(tasks + e.Name() + "/stat")
			blocked[e.Name()] = blocked[e.Name()] || isBlocked(stat)
			all = all && blocked[e.Name()]
		}
		if all {
			return
		}
	}
}

// isBlocked reports whether a thread is neither running nor stopped. It returns false without a stat.
func isBlocked(stat []byte) bool {
	state := procstat.Parse(stat).Field(procstat.State)
	return state != "" && !strings.Contains("RTt", state)
}
