package stack

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// maxSettle bounds how long settle waits for threads that compute.
const maxSettle = 500 * time.Millisecond

// settle returns once each thread of a process has blocked since it was stopped for a snapshot, at most after
// limit. A resumed thread enters its wait again, and must get a processor for that. On a busy machine this
// takes a while. Until then its CPU time grows, although it makes no progress.
func settle(pid int, limit time.Duration) {
	blocked := map[string]bool{}
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		all := true
		tasks := fmt.Sprintf("/proc/%d/task/", pid)
		entries, _ := os.ReadDir(tasks)
		for _, e := range entries {
			blocked[e.Name()] = blocked[e.Name()] || isBlocked(tasks+e.Name()+"/stat")
			all = all && blocked[e.Name()]
		}
		if all {
			return
		}
	}
}

// isBlocked reports whether a thread neither runs nor is stopped.
func isBlocked(stat string) bool {
	b, _ := os.ReadFile(stat)
	text := string(b)
	_, state, _ := strings.Cut(text[strings.LastIndexByte(text, ')')+1:], " ")
	return state != "" && !strings.ContainsRune("RTt", rune(state[0]))
}
