package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A program that hangs is examined before it is ended: what each of its threads does, according to the kernel
// and, if there is one, the debugger.

// runMark is the variable by which a command's processes are found: those of Wine have no parent.
const runMark = "SEEDWALK_TEST_RUN"

// diagnosisLimit limits the time for one process.
const diagnosisLimit = 20 * time.Second

// sayHang is the message of swhost and launch before they end a program that hangs.
const sayHang = ": it hangs"

// hangWatcher keeps a command's output, and examines its processes when its host reports a hang, some seconds
// before the program is ended.
type hangWatcher struct {
	said bytes.Buffer // not embedded: its ReadFrom would pass Write by
	look func()
	once sync.Once
}

func (w *hangWatcher) Write(b []byte) (int, error) {
	w.said.Write(b)
	if bytes.Contains(w.said.Bytes(), []byte(sayHang)) {
		w.once.Do(w.look)
	}
	return len(b), nil
}

func (w *hangWatcher) String() string { return w.said.String() }

// diagnose describes the processes that have mark in their environment, and Wine's server, on which all
// Windows programs depend.
func diagnose(mark string) string {
	var b strings.Builder
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := fmt.Sprintf("/proc/%d", pid)
		env, _ := os.ReadFile(dir + "/environ")
		if bytes.Contains(env, []byte(mark)) || line(dir, "comm") == "wineserver64" {
			diagnoseProcess(&b, pid)
		}
	}
	return b.String()
}

// systemProcess are those of Wine that always run.
var systemProcess = map[string]bool{"services.exe": true, "winedevice.exe": true,
	"explorer.exe": true, "plugplay.exe": true,
	"svchost.exe": true, "rpcss.exe": true, "bash": true}

func diagnoseProcess(b *strings.Builder, pid int) {
	dir := fmt.Sprintf("/proc/%d", pid)
	name := line(dir, "comm")
	if systemProcess[name] {
		return
	}
	fmt.Fprintf(b, "process %d %s\n", pid, name)
	tasks, _ := filepath.Glob(dir + "/task/*")
	for _, t := range tasks {
		fmt.Fprintf(b, "  thread %-8s %-16s in %s; syscall %s\n    %s\n", filepath.Base(t), line(t, "comm"),
			line(t, "wchan"), line(t, "syscall"), line(t, "stat"))
	}
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), diagnosisLimit)
	defer cancel()
	out, _ := exec.CommandContext(ctx, gdb, "-p", strconv.Itoa(pid), "-batch", "-ex", "set pagination off",
		"-ex", "thread apply all bt 12").CombinedOutput()
	b.Write(out)
}

// line is the first line of a file of /proc, "?" if it cannot be read.
func line(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	return first
}

// A program that does nothing is found by its mark, together with the call it waits in.
func TestDiagnose(t *testing.T) {
	mark := fmt.Sprintf("%s=%d.%d", runMark, os.Getpid(), time.Now().UnixNano())
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), mark)
	must.Do(t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var got string
	want := fmt.Sprintf("process %d sleep\n  thread %d", cmd.Process.Pid, cmd.Process.Pid)
	for range 50 { // until it has become the program
		if got = diagnose(mark); strings.Contains(got, want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s\nwant %q", got, want)
}

// If a host reports that its program hangs, the program is examined once, whatever the wording.
func TestHangWatcher(t *testing.T) {
	looks := 0
	w := &hangWatcher{look: func() { looks++ }}
	cmd := exec.Command("sh", "-c",
		"echo all is well >&2; printf 'swhost: it ' >&2; sleep 0.1; echo hangs >&2; echo launch: it hangs >&2")
	cmd.Stderr = w
	must.Do(t, cmd.Run())
	expect.True(t, looks == 1 && w.String() == "all is well\nswhost: it hangs\nlaunch: it hangs\n",
		"%d looks at %q", looks, w.String())
}
