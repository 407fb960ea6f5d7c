// Package procstat reads what Linux says of a process in /proc/PID/stat and /proc/PID/status.
//
// Sources: proc(5), "/proc/pid/stat", which numbers the fields from 1, and "/proc/pid/status".
//
// Glossary. A *tick* is 10 ms (USER_HZ).
//
// Strategy: the name in field 2 may contain anything, but no later field contains a parenthesis. So the
// fields are counted from the last parenthesis.
//
// Known gaps: none.
package procstat

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The fields by their numbers, and the unit of times.
const (
	State    = 3
	Flags    = 9
	Threads  = 20
	Start    = 22 // in ticks since the machine started, the time it slept included
	ArgStart = 48
	EnvEnd   = 51

	Tick = 10_000_000 // nanoseconds

	kernelThread = 0x200000 // PF_KTHREAD of the flags
)

// Stat holds the fields from the third on. It is empty if the process does not exist.
type Stat []string

// Read returns the fields of a process.
func Read(pid int) Stat {
	b, _ := ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return Parse(b)
}

// Status returns the fields of a process's status file by their names, nil if the process does not exist.
func Status(pid int) map[string]string {
	b, err := ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		out[key] = strings.TrimSpace(value)
	}
	return out
}

// Parse returns the fields of a file.
func Parse(stat []byte) Stat {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// Field returns a field by its number, or "".
func (s Stat) Field(n int) string {
	if n-State >= len(s) {
		return ""
	}
	return s[n-State]
}

// Number returns a field by its number, or 0.
func (s Stat) Number(n int) uint64 {
	v, _ := strconv.ParseUint(s.Field(n), 10, 64)
	return v
}

// Ended reports whether the process does not exist, or waits for its parent.
func (s Stat) Ended() bool {
	return s.Field(State) == "" || strings.Contains("ZX", s.Field(State))
}

// Kernel reports whether this is a thread of the kernel, which has no memory of its own.
func (s Stat) Kernel() bool { return s.Number(Flags)&kernelThread != 0 }
