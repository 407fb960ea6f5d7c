package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The outputs of a recording are written though no thread of the process takes a signal, as
// on a machine that has no processor for them. What is in the process goes when they run.
func TestOutputsDoNotWaitForThreads(t *testing.T) {
	target, _ := attached(t, app(t, "Truth", "120")...)
	pid := target.Process.Pid
	before := settled(t, pid)
	file := filepath.Join(tempdir.New(t), "out.folded")
	tool := exec.Command(tool(t), "record", "--pid", fmt.Sprint(pid), "--duration", "2s", "--quiet", "--output", file)
	tool.Stderr = os.Stderr
	if err := tool.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tool.Process.Kill() })
	until(t, "the probe is there", func() bool { return systemStateOf(t, pid).ours > 0 })
	time.Sleep(time.Second) // any other moment will do, before or after the first sample
	syscall.Kill(pid, syscall.SIGSTOP)
	until(t, "the output is written", func() bool { _, err := os.Stat(file); return err == nil })
	ended := make(chan error, 1)
	go func() { ended <- tool.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the tool wrote its output last, and has left what it put into the process: %v", err)
	case <-time.After(time.Second):
	}
	syscall.Kill(pid, syscall.SIGCONT)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if now := systemStateOf(t, pid); now.caught != before.caught || now.timers != 0 {
		t.Errorf("afterwards %+v, before %+v", now, before)
	}
}

// until waits for a condition, for a minute at most.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("not within a minute: " + what)
}
