package paused

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
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
	gdb := needs.Command(t, "gdb")
	pid, _ := startStacks(t, 6)
	halt(t, pid)
	l := look(t, pid)
	cmd := exec.Command(gdb, "-nx", "-batch", "-ex", "set pagination off", "-ex",
		"set debuginfod enabled off", "-ex", "set backtrace past-main on", "-ex",
		"thread apply all bt", "-p", strconv.Itoa(pid))
	out, err := cmd.Output()
	must.Equal(t, err, nil, out)
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
	expect.True(t, seen == len(l.Stacks), "gdb showed %d of %d threads\n%s", seen, len(l.Stacks), out)
}

// alias reports whether two names may be of one function: a C library has several names for some.
func alias(a, b string) bool {
	bare := func(s string) string {
		s, _, _ = strings.Cut(s, "@")
		return strings.Replace(strings.TrimLeft(strings.TrimPrefix(s, "__GI_"), "_"), "IO_new_", "IO_", 1)
	}
	a, b = bare(a), bare(b)
	return a == b || strings.HasSuffix(a, b) || strings.HasSuffix(b, a) || strings.HasPrefix(a, b) ||
		strings.HasPrefix(b, a)
}

// A core that the kernel wrote when a program crashed while all its threads ran: every stack is complete and
// equals the record that its thread keeps.
func TestPausedKernelCore(t *testing.T) {
	if b, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil ||
		strings.HasPrefix(string(b), "|") || strings.Contains(string(b), "/") {
		t.Skipf("SKIPPED-CHECK: the kernel writes cores elsewhere (kernel.core_pattern is %q)", b)
	}
	const threads = 6
	pid, exe := startStacks(t, threads)
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unlimited, nil); err != nil {
		t.Skip("SKIPPED-CHECK: the limit of cores cannot be raised: " + err.Error())
	}
	syscall.Kill(pid, syscall.SIGSEGV)
	for range 1000 { // once it is a zombie, the core is complete
		if b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid),
			"stat")); strings.Contains(string(b), ") Z ") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(exe), "*"))
	if files = slices.DeleteFunc(files, func(f string) bool { return f == exe }); len(files) != 1 {
		t.Skipf("SKIPPED-CHECK: the kernel has written no core: %v", files)
	}
	core, err := dump.Open(files[0])
	if err != nil || len(core.Problems) > 0 {
		t.Fatal(errors.Join(append(core.Problems, err)...))
	}
	m := dump.NewModules(core, nil)
	defer m.Close()
	loader := live.NewLoader(0)
	loader.Image = m.Image
	expect.True(t, core.Threads[0].TID == uint32(pid) && core.Threads[0].Signal == int(syscall.SIGSEGV),
		"thread %d with signal %d brought it down", core.Threads[0].TID, core.Threads[0].Signal)
	paused := New(context.ArchAMD64, m, loader, m.Maps())
	truths := 0
	for i := range core.Threads {
		c := &core.Threads[i]
		th := paused.Read(c.TID, &c.Regs, c.Stood)
		s := paused.Walk(&th)
		expect.Equal(t, s.Gap, merge.GapNone, "thread %d: at %#x after %d frames", c.TID, s.At, len(s.Frames))
		_, _, want, ok := shadowIn(&th)
		if !ok {
			continue
		}
		truths++
		got := chainOf(&s)
		expect.True(t, len(got) >= len(want) && len(got) <= len(want)+1 &&
			slices.Equal(got[:len(want)], want), "thread %d:\n got %v\nwant %v", c.TID, got, want)
	}
	t.Logf("%d threads, %d that know their stacks", len(core.Threads), truths)
	expect.True(t, len(core.Threads) == threads+1 && truths == threads,
		"%d threads, %d that know their stacks", len(core.Threads), truths)
}
