// Package threadprog starts programs with many threads for tests, and waits until they rest.
package threadprog

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Start starts a program of testdata with so many threads and waits until all are there.
func Start(t *testing.T, program string, threads int) (pid int, exe string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gcc")
	}
	root, err := moduleroot.Find()
	must.Do(t, err)
	source := filepath.Join(root, "testkit/threadprog/testdata", program+".c")
	exe = filepath.Join(tempdir.New(t), program)
	if out, err := exec.Command(gcc, "-O2", "-fno-optimize-sibling-calls", "-pthread", "-o", exe,
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(exe, strconv.Itoa(threads))
	cmd.Dir = filepath.Dir(exe) // a core would be written there
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must.True(t, err == nil && line == "ready\n", "%q %v", line, err)
	return cmd.Process.Pid, exe
}

// Settle waits until no thread of a process runs any more and there are more than so many.
func Settle(t *testing.T, pid, threads int) {
	t.Helper()
	for range 600 {
		before, _, _ := state(pid)
		time.Sleep(50 * time.Millisecond)
		if ran, n, blocked := state(pid); ran == before && n > threads && blocked {
			return
		}
	}
	t.Skip("SKIPPED-CHECK: the program does not come to rest")
}

// state is the CPU time of a process's threads in nanoseconds, how many there are, and whether
// all are blocked.
func state(pid int) (ran uint64, threads int, blocked bool) {
	blocked = true
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range all {
		var nanos uint64
		times, _ := os.ReadFile(task + "/schedstat")
		fmt.Sscan(string(times), &nanos)
		call, _ := os.ReadFile(task + "/syscall")
		ran, blocked = ran+nanos, blocked && len(call) > 0 && !strings.HasPrefix(string(call), "running")
	}
	return ran, len(all), blocked
}

// Echo starts a process of one thread that runs when run is called.
func Echo(t *testing.T) (pid int, run func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED-CHECK: no cat")
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewReader(out)
	run = func() {
		t.Helper()
		io.WriteString(in, "x\n")
		must.Get(lines.ReadString('\n'))(t)
	}
	run()
	Settle(t, cmd.Process.Pid, 0)
	return cmd.Process.Pid, run
}
