// Package gdb asks gdb for the stacks of a process: a second opinion on native frames.
// Known gaps: gdb does not support managed code, so its frames from the first managed one on are useless.
package gdb

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	thread  = regexp.MustCompile(`^[^\n]*\(LWP (\d+)\)`)
	address = regexp.MustCompile(`(?m)^#\d+ +(0x[0-9a-f]+)`)
)

// depth is the most frames per thread.
const depth = "40"

// Stacks are every thread's addresses, leaf first. No debug information is used: with it gdb adds frames of
// inlined functions and tail calls, which are not on the stack.
func Stacks(t testing.TB, pid int) map[uint64][]uint64 {
	t.Helper()
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gdb")
	}
	out, err := exec.Command(gdb, "-nx", "-batch", "-iex", "set debug-file-directory /nowhere", "-ex",
		"set pagination off", "-ex", "set debuginfod enabled off", "-ex",
		"set print frame-info location-and-address",
		"-ex", "thread apply all bt "+depth, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Skipf("SKIPPED-CHECK: gdb may not look: %v", err)
	}
	stacks := map[uint64][]uint64{}
	for part := range strings.SplitSeq(string(out), "\nThread ") {
		m := thread.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		tid, _ := strconv.ParseUint(m[1], 10, 64)
		for _, a := range address.FindAllStringSubmatch(part, -1) {
			addr, _ := strconv.ParseUint(a[1], 0, 64)
			stacks[tid] = append(stacks[tid], addr)
		}
	}
	return stacks
}
