//go:build unix

package diagnostics

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestSocket finds sockets in a simulated /proc: in a container the process has another id and another root.
func TestSocket(t *testing.T) {
	proc := tempdir.New(t)
	dir := filepath.Join(proc, "464")
	tmp := filepath.Join(dir, "root", "my", "tmp")
	must.Do(t, os.MkdirAll(tmp, 0o755))
	write := func(path, text string) {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write(filepath.Join(dir, "stat"), "464 (dotnet) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20")
	write(filepath.Join(dir, "status"), "Name:\tdotnet\nNSpid:\t464\t7\n")
	write(filepath.Join(dir, "environ"), "A=b\x00TMPDIR=/my/tmp\x00")
	var e *FindError
	write(filepath.Join(tmp, "dotnet-diagnostic-7-776-socket"), "") // of a dead process
	_, err := socket(proc, 464)
	expect.True(t, errors.As(err, &e) && e.Why == NoServer, "stale socket: %v", err)
	want := filepath.Join(tmp, fmt.Sprintf("dotnet-diagnostic-%d-%d-socket", 7, 777))
	write(want, "")
	got, err := socket(proc, 464)
	expect.True(t, got == want && err == nil, "%q, %v", got, err)
	_, err = socket(proc, 465)
	expect.True(t, errors.As(err, &e) && e.Why == NoProcess, "no process: %v", err)
}

// A process has ended if it is a zombie without other threads.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name, stat string
		want       Why
	}{
		{"runs", "464 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 777", NoServer},
		{"ended", "464 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 777", Ended},
		{"without its main thread", "464 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 2 18 777", NoServer},
		{"kernel", "464 (a) S 1 2 3 4 5 2097152 7 8 9 10 11 12 13 14 15 16 1 18 777", Kernel},
	} {
		proc := tempdir.New(t)
		must.Do(t, os.Mkdir(filepath.Join(proc, "464"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(proc, "464", "stat"), []byte(c.stat), 0o644))
		var e *FindError
		if _, err := socket(proc, 464); !errors.As(err, &e) || e.Why != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, whys[c.want])
		}
	}
}

// A runtime needs free descriptors to answer.
func TestFreeFiles(t *testing.T) {
	const limit = "Limit                     Soft Limit           Hard Limit           Units\n" +
		"Max processes             9                    9                    processes\n" +
		"Max open files            %s                 4096                 files\n"
	for _, c := range []struct {
		name, limits string
		fds          []string
		want         bool
	}{
		{"all in use", fmt.Sprintf(limit, "5"), []string{"0", "1", "2", "3", "4"}, false},
		{"seven free", fmt.Sprintf(limit, "10"), []string{"0", "1", "4"}, false},
		{"eight free", fmt.Sprintf(limit, "10"), []string{"0", "4"}, true},
		{"limit lowered later", fmt.Sprintf(limit, "11"), []string{"0", "4", "5", "12", "100"}, true},
		{"unlimited", fmt.Sprintf(limit, "unlimited"), []string{"0"}, true},
		{"unreadable", "", []string{"0"}, true},
	} {
		proc := tempdir.New(t)
		dir := filepath.Join(proc, "464")
		must.Do(t, os.MkdirAll(filepath.Join(dir, "fd"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, "limits"), []byte(c.limits), 0o644))
		for _, fd := range c.fds {
			must.Do(t, os.WriteFile(filepath.Join(dir, "fd", fd), nil, 0o644))
		}
		expect.True(t, hasFreeFiles(proc, 464) == c.want, "%s: want %v", c.name, c.want)
	}
}

// A process whose descriptors are all in use is refused at once.
func TestFullProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -n 3; echo; read x")
	in, out := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	tmp := tempdir.New(t)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	must.Get(out.Read(make([]byte, 1)))(t) // now the limit is set
	start := procstat.Read(cmd.Process.Pid).Field(procstat.Start)
	path := filepath.Join(tmp, fmt.Sprintf("dotnet-diagnostic-%d-%s-socket", cmd.Process.Pid, start))
	l := must.Get(net.Listen("unix", path))(t)
	defer l.Close()
	var e *FindError
	_, err := Process(cmd.Process.Pid)
	expect.True(t, errors.As(err, &e) && e.Why == NoFiles, "%v", err)
}

// The program in an emulator has the number of the process, and started later.
func TestSocketOfEmulator(t *testing.T) {
	for _, c := range []struct {
		name, exe, want string
		sockets         []string
	}{
		{"later", "/usr/bin/qemu-aarch64-static", "779", []string{"776", "779", "1005", "x"}},
		{"exact", "/usr/bin/qemu-aarch64", "777", []string{"777", "779"}},
		{"before only", "/usr/bin/qemu-aarch64", "", []string{"776", "99"}},
		{"no emulator", "/usr/bin/dotnet", "", []string{"779"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc, tmp := tempdir.New(t), tempdir.New(t)
			dir := filepath.Join(proc, "464")
			files := map[string]string{filepath.Join(dir,
				"stat"): "464 (dotnet) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20",
				filepath.Join(dir, "environ"): "TMPDIR=" + tmp + "\x00"}
			name := func(start string) string {
				return filepath.Join(tmp,
					"dotnet-diagnostic-464-"+start+"-socket")
			}
			for _, s := range c.sockets {
				files[name(s)] = ""
			}
			must.Do(t, errors.Join(os.Mkdir(dir, 0o755), os.Symlink(c.exe, filepath.Join(dir, "exe"))))
			for path, text := range files {
				must.Do(t, os.WriteFile(path, []byte(text), 0o644))
			}
			got, err := socket(proc, 464)
			if c.want != "" && (got != name(c.want) || err != nil) || c.want == "" && got != "" {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestProcessThatIsNone(t *testing.T) {
	var e *FindError
	_, err := Process(os.Getpid())
	expect.True(t, errors.As(err, &e) && e.Why == NoServer, "a Go program: %v", err)
	_, err = Process(1 << 30)
	expect.True(t, errors.As(err, &e) && e.Why == NoProcess, "no such process: %v", err)
}

// A process that does not answer because a signal has stopped it is reported as that. If it runs, the error
// is the time limit, of the write or the read.
func TestStopped(t *testing.T) {
	for _, name := range []string{"runs", "stopped"} {
		cmd := exec.Command("sleep", "60")
		must.Do(t, cmd.Start())
		pid := cmd.Process.Pid
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		want := "i/o timeout"
		if name == "stopped" {
			must.Do(t, cmd.Process.Signal(syscall.SIGSTOP))
			var status syscall.WaitStatus
			must.Get(syscall.Wait4(pid, &status, syscall.WUNTRACED, nil))(t)
			want = fmt.Sprintf("process %d: a signal has stopped it; kill -CONT continues it", pid)
		}
		c := NewClient(pid, func() (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			return ours, nil
		})
		c.Timeout = 20 * time.Millisecond
		if _, err := c.Info(); err == nil || !strings.HasSuffix(err.Error(), want) ||
			name == "runs" && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
