package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/stack/capture"
)

// These stacks are of a C++ compiler at work and of a Python interpreter. Each run captures new ones with the
// code of `seedwalk capture`.

// takeFor bounds the time for which the stacks of one program are captured.
const takeFor = 20 * time.Second

// captured captures the stacks. It logs why a program has none.
func captured(b *testing.B) (all []input) {
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"compiler", []string{"g++", "-O2", "-c", "-o", "/dev/null",
			filepath.Join("testdata", "templates.cc")}},
		{"python", []string{"python3", filepath.Join("testdata", "fib.py")}},
	} {
		if f := take(b, c.argv); f != nil {
			all = append(all, input{c.name, f})
		}
	}
	return all
}

func take(b *testing.B, argv []string) *capture.File {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr,
		&unix.SysProcAttr{Setpgid: true} // a compiler is more than one process
	if err := cmd.Start(); err != nil {
		b.Logf("SKIPPED-CHECK: %v", err)
		return nil
	}
	t := capture.NewTaker(1500, 256<<10)
	for since := time.Now(); !t.Full() && !capture.Ended(cmd.Process.Pid) &&
		(t.Refused == nil || len(t.File.Stacks) > 0) && time.Since(since) < takeFor; {
		t.Round(cmd.Process.Pid)
		time.Sleep(time.Millisecond)
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	_ = cmd.Wait()
	if t.Refused != nil {
		b.Logf("%s: %d stacks, %v", argv[0], len(t.File.Stacks), t.Refused)
	}
	if len(t.File.Stacks) == 0 {
		b.Logf("SKIPPED-CHECK: no stacks of %s: %v", argv[0], t.Refused)
		return nil
	}
	return &t.File
}
