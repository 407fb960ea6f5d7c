package stack

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// settle waits while a thread computes or is stopped, and returns soon once the thread is blocked.
func TestSettle(t *testing.T) {
	t.Parallel()
	start := func(argv ...string) *exec.Cmd {
		c := exec.Command(argv[0], argv[1:]...)
		must.Do(t, c.Start())
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	took := func(c *exec.Cmd, limit time.Duration) time.Duration {
		began := time.Now()
		settle(c.Process.Pid, limit)
		return time.Since(began)
	}
	computes := start("sh", "-c", "while :; do :; done")
	time.Sleep(200 * time.Millisecond) // a shell may block while it starts
	if d := took(computes, 50*time.Millisecond); d < 50*time.Millisecond {
		t.Errorf("a computing thread: %v", d)
	}
	sleeps := start("sleep", "1000")
	if d := took(sleeps, time.Minute); d > 30*time.Second {
		t.Errorf("a sleeping thread: %v", d)
	}
	must.Do(t, sleeps.Process.Signal(syscall.SIGSTOP))
	if d := took(sleeps, 50*time.Millisecond); d < 50*time.Millisecond {
		t.Errorf("a stopped thread: %v", d)
	}
	must.Do(t, sleeps.Process.Signal(syscall.SIGCONT))
	if d := took(sleeps, time.Minute); d > 30*time.Second {
		t.Errorf("a continued thread: %v", d)
	}
}
