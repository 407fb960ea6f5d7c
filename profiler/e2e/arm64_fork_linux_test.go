//go:build amd64

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// qemu-user forks while other threads hold its locks. A child that needs one of these locks hangs before it
// executes the program (seen with qemu 7.2, on loaded machines only).

const (
	parentPID   = 4 // field of /proc/PID/stat
	mostForks   = 3
	hangingFork = 20 * time.Second // so long after its start, a child has executed the program
)

// runForking runs an emulated tool that starts a program. If the child hangs, it is killed, and the tool runs
// again.
func runForking(t *testing.T, limit time.Duration, argv ...string) (r result) {
	t.Helper()
	for range mostForks {
		stop, hung := make(chan bool), make(chan int)
		go func() { hung <- killForks(argv, hangingFork, stop) }()
		r = run(t, limit, nil, argv...)
		close(stop)
		n := <-hung
		if n == 0 {
			return r
		}
		t.Logf("%d children of the emulator hung before they executed a program", n)
	}
	return r
}

// killForks kills the children of a command that have existed for longer than age and have executed nothing.
// Such a child has its parent's command line. killForks returns their number.
func killForks(argv []string, age time.Duration, stop chan bool) (killed int) {
	line, first := strings.Join(argv, "\x00")+"\x00", map[int]time.Time{}
	for {
		pids := map[int]bool{}
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			if b, _ := os.ReadFile(file); string(b) == line {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				pids[pid] = true
			}
		}
		for pid := range pids {
			if begin := first[pid]; begin.IsZero() {
				first[pid] = time.Now()
			} else if pids[int(procstat.Read(pid).Number(parentPID))] && time.Since(begin) > age {
				syscall.Kill(pid, syscall.SIGKILL)
				killed++
			}
		}
		select {
		case <-stop:
			return killed
		case <-time.After(age / 20):
		}
	}
}

// TestKillForks kills a shell's child, which executes nothing, and not the shell.
func TestKillForks(t *testing.T) {
	argv := []string{"bash", "-c", "(read a) ; echo $? ; exit 3"}
	cmd := exec.Command(argv[0], argv[1:]...)
	in := must.Get(cmd.StdinPipe())(t)
	defer in.Close()
	stop, killed := make(chan bool), make(chan int)
	go func() { killed <- killForks(argv, 200*time.Millisecond, stop) }()
	out, _ := cmd.Output()
	close(stop)
	must.Equal(t, <-killed, 1)
	must.Equal(t, string(out), "137\n")
}
