package paused

import (
	"errors"
	"os"
	"path/filepath"
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
)

// A core that the kernel wrote when a program crashed while all its threads ran: every stack is complete and
// equals the stack's own record.
func TestPausedKernelCore(t *testing.T) {
	if b, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil || strings.HasPrefix(string(b), "|") || strings.Contains(string(b), "/") {
		t.Skipf("SKIPPED-CHECK: the kernel writes cores elsewhere (kernel.core_pattern is %q), which is the machine's to say", b)
	}
	const threads = 6
	pid, exe := startStacks(t, threads)
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unlimited, nil); err != nil {
		t.Skip("SKIPPED-CHECK: the limit of cores cannot be raised: " + err.Error())
	}
	syscall.Kill(pid, syscall.SIGSEGV)
	for range 1000 { // once it is a zombie, the core is complete
		if b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); strings.Contains(string(b), ") Z ") {
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
	if core.Threads[0].TID != uint32(pid) || core.Threads[0].Signal != int(syscall.SIGSEGV) {
		t.Errorf("thread %d with signal %d brought it down", core.Threads[0].TID, core.Threads[0].Signal)
	}
	paused := New(context.ArchAMD64, m, loader, m.Maps())
	truths := 0
	for i := range core.Threads {
		c := &core.Threads[i]
		th := paused.Read(c.TID, &c.Regs, c.Stood)
		s := paused.Walk(&th)
		if s.Gap != merge.GapNone {
			t.Errorf("thread %d: %v at %#x after %d frames", c.TID, s.Gap, s.At, len(s.Frames))
		}
		_, _, want, ok := shadowIn(&th)
		if !ok {
			continue
		}
		truths++
		if got := chainOf(&s); len(got) < len(want) || len(got) > len(want)+1 || !slices.Equal(got[:len(want)], want) {
			t.Errorf("thread %d:\n got %v\nwant %v", c.TID, got, want)
		}
	}
	if t.Logf("%d threads, %d that know their stacks", len(core.Threads), truths); len(core.Threads) != threads+1 || truths != threads {
		t.Errorf("%d threads, %d that know their stacks", len(core.Threads), truths)
	}
}
