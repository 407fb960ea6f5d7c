package stack

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
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
	d := took(computes, 50*time.Millisecond)
	expect.True(t, d >= 50*time.Millisecond, "a computing thread: %v", d)
	sleeps := start("sleep", "1000")
	d = took(sleeps, time.Minute)
	expect.True(t, d <= 30*time.Second, "a sleeping thread: %v", d)
	must.Do(t, sleeps.Process.Signal(syscall.SIGSTOP))
	d = took(sleeps, 50*time.Millisecond)
	expect.True(t, d >= 50*time.Millisecond, "a stopped thread: %v", d)
	must.Do(t, sleeps.Process.Signal(syscall.SIGCONT))
	d = took(sleeps, time.Minute)
	expect.True(t, d <= 30*time.Second, "a continued thread: %v", d)
}
