package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// state returns a thread's state as in proc(5): R, S, D, T, t, Z, X; 0 if it is gone.
func state(tid int) byte {
	s := statusField(tid, "State")
	if s == "" {
		return 0
	}
	return s[0]
}

func statusField(tid int, key string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, _ := strings.Cut(line, ":"); k == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Threads lists the threads of a process.
func Threads(pid int) ([]int, error) {
	d, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	var out []int
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			out = append(out, tid)
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(errors.New("no threads"), err)
	}
	return out, nil
}
