package paused

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var gdbFrame = regexp.MustCompile(`(?m)^#\d+ +(0x[0-9a-f]+ in )?([^ (]+) \(`)

// gdbNames returns the functions of a backtrace. The frame before a caller without an address was inlined
// into that caller.
func gdbNames(part string) (out []string) {
	for i, f := range gdbFrame.FindAllStringSubmatch(part, -1) {
		if i > 0 && f[1] == "" {
			out = out[:len(out)-1]
		}
		out = append(out, f[2])
	}
	return out
}

// gdb shows the same functions.
func TestPausedGDB(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gdb")
	}
	pid, _ := startStacks(t, 6)
	halt(t, pid)
	l := look(t, pid)
	cmd := exec.Command(gdb, "-nx", "-batch", "-ex", "set pagination off", "-ex", "set debuginfod enabled off", "-ex", "set backtrace past-main on", "-ex", "thread apply all bt", "-p", strconv.Itoa(pid))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := 0
	for part := range strings.SplitSeq(string(out), "\nThread ") {
		i := strings.Index(part, "(LWP ")
		if i < 0 {
			continue
		}
		tid, _ := strconv.Atoi(part[i+5 : i+strings.IndexByte(part[i:], ')')])
		j := slices.IndexFunc(l.Stacks, func(s Stack) bool { return int(s.TID) == tid })
		frames := gdbNames(part)
		if j < 0 || len(frames) != len(l.Stacks[j].Frames) {
			t.Errorf("thread %d: gdb has %d frames\n%s", tid, len(frames), part)
			continue
		}
		for k, f := range frames {
			if name := l.Stacks[j].Frames[k].Name; f != "??" && !alias(name, f) {
				t.Errorf("thread %d frame %d: %q, gdb says %q", tid, k, name, f)
			}
		}
		seen++
	}
	if seen != len(l.Stacks) {
		t.Errorf("gdb showed %d of %d threads\n%s", seen, len(l.Stacks), out)
	}
}

// alias: a C library has several names for one function.
func alias(a, b string) bool {
	bare := func(s string) string {
		s, _, _ = strings.Cut(s, "@")
		return strings.Replace(strings.TrimLeft(strings.TrimPrefix(s, "__GI_"), "_"), "IO_new_", "IO_", 1)
	}
	a, b = bare(a), bare(b)
	return a == b || strings.HasSuffix(a, b) || strings.HasSuffix(b, a) || strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
