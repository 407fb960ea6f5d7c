package engine

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// sandboxedIn is set in the environment of the process that puts itself into the sandbox: the number of the
// process that it may read.
const sandboxedIn = "SEEDWALK_TEST_SANDBOX"

// In the sandbox, the helper can do what it needs and nothing else, on threads that existed before too.
func TestSandbox(t *testing.T) {
	if pid, err := strconv.Atoi(os.Getenv(sandboxedIn)); err == nil {
		inSandbox(t, pid)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestSandbox$", "-test.v")
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), sandboxedIn+"="+strconv.Itoa(os.Getpid()))
	out, err := c.CombinedOutput()
	expect.True(t, err == nil && strings.Count(string(out), "--- PASS") == 1, "%v: %s", err, out)
}

func inSandbox(t *testing.T, pid int) {
	must.Do(t, os.WriteFile("there", []byte("text"), 0o600))
	ask, before := make(chan func() error), make(chan error) // of a thread that exists before the sandbox
	go func() {
		runtime.LockOSThread()
		for f := range ask {
			before <- f()
		}
	}()
	ask <- func() error { return nil }
	<-before
	must.Do(t, sandbox(pid, false))
	for what, f := range map[string]func() error{
		"execute": func() error { return unix.Exec("/bin/true", []string{"true"}, nil) },
		"fork":    fork,
		"connect": func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"write":   func() error { _, err := os.OpenFile("there", os.O_WRONLY, 0); return err },
		"make":    func() error { return os.WriteFile("new", nil, 0o600) },
		"remove":  func() error { return os.Remove("there") },
		"rename":  func() error { return os.Rename("there", "new") },
		"kill":    func() error { return unix.Kill(pid, 0) },
		"signal":  func() error { return unix.Tgkill(pid, pid, 0) },
		"limit":   func() error { return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, new(unix.Rlimit)) },
		"trace":   func() error { return unix.PtraceAttach(pid) },
		"code": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_EXEC|unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
			return err
		},
		"read another process": func() error { return readWord(1) },
	} {
		ask <- f
		first, second := f(), <-before
		expect.True(t, os.IsPermission(first) && os.IsPermission(second), "%s: %v, %v", what, first, second)
	}
	_, err := unix.Openat2(unix.AT_FDCWD, "there", &unix.OpenHow{Flags: unix.O_RDWR})
	expect.Equal(t, err, error(unix.EPERM), "openat2")
	expect.Equal(t, readWord(pid), error(unix.EFAULT), "address 1 of the process that may be read")
	b := must.Get(os.ReadFile("there"))(t)
	expect.Equal(t, string(b), "text")
	var threads sync.WaitGroup
	for range 16 { // new threads start and end
		threads.Go(func() { runtime.LockOSThread(); unix.Getpid() })
	}
	threads.Wait()
}

// fork starts a process, which ends at once.
func fork() error {
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	if errno == 0 && pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// readWord reads at address 1 of a process.
func readWord(pid int) error {
	var word [8]byte
	local := []unix.Iovec{{Base: &word[0], Len: uint64(len(word))}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1, Len: len(word)}}, 0)
	return err
}
