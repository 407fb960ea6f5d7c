package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestOpenToAll(t *testing.T) {
	dir, err := os.MkdirTemp("", "seedwalk-open-")
	must.True(t, err == nil && os.Chmod(dir, 0o755) == nil, "%v", err)
	defer os.RemoveAll(dir)
	for path := dir; path != "/"; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode()&1 == 0 {
			t.Skipf("SKIPPED-CHECK: %s is closed to other users", path)
		}
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	below, link := filepath.Join(closed, "below"), filepath.Join(dir, "link")
	for path, mode := range map[string]fs.FileMode{open: 0o755, closed: 0o700} {
		err := os.Mkdir(path, mode)
		must.True(t, err == nil && os.Chmod(path, mode) == nil, "%v", err)
	}
	err = os.Mkdir(below, 0o755)
	must.True(t, err == nil && os.Symlink(below, link) == nil, "%v", err)
	for path, want := range map[string]bool{open: true, closed: false, below: false, link: false,
		filepath.Join(dir, "absent"): false} {
		expect.Equal(t, openToAll(path), want, "openToAll(%s)", filepath.Base(path))
	}
}

func TestUserOf(t *testing.T) {
	uid, ok := userOf(os.Getpid())
	expect.True(t, ok && uid == os.Geteuid(), "user %d, %v", uid, ok)
	_, ok = userOf(1 << 30)
	expect.True(t, !ok, "a process that is not there has a user")
}

// No goroutine waits for the end of a process that is no longer recorded: it would keep the recording's
// memory. The end of a process is noticed, even if its parent has not waited for it.
func TestAwaitEnd(t *testing.T) {
	for name, await := range map[string]func(*run){"descriptor": (*run).awaitEnd, "polling": (*run).pollEnd} {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		must.True(t, err == nil && cmd.Start() == nil, "%v", err)
		r := &run{opt: &options.Options{PID: cmd.Process.Pid},
			exited: make(chan struct{}), over: make(chan struct{})}
		done := make(chan struct{})
		go func() { await(r); close(done) }()
		close(r.over)
		<-done
		select {
		case <-r.exited:
			t.Errorf("%s: the process has ended", name)
		default:
		}
		r.over = make(chan struct{})
		in.Close()
		if name == "polling" { // it sees a process until its parent has waited for it
			cmd.Wait()
		}
		await(r)
		<-r.exited
		cmd.Wait()
	}
}

// The port of a process disappears before the process does. It is not called a process without a port.
func TestEndsNow(t *testing.T) {
	for want, ends := range map[string]bool{"it ended before the probe was loaded": true,
		"it has no diagnostics port": false} {
		cmd := exec.Command("sleep", "60")
		must.Do(t, cmd.Start())
		if ends {
			time.AfterFunc(20*time.Millisecond, func() { cmd.Process.Kill() })
		}
		r := attachable(&options.Options{PID: cmd.Process.Pid})
		expect.True(t, r != nil && strings.HasPrefix(r.What, want), "it ends: %v; %+v", ends, r)
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// Tools such as top -H show the numbers of threads. Such a number is refused with that of the process.
func TestThreadInsteadOfProcess(t *testing.T) {
	tid := os.Getpid()
	for _, task := range must.Get(os.ReadDir("/proc/self/task"))(t) {
		if n := must.Get(strconv.Atoi(task.Name()))(t); n != os.Getpid() {
			tid = n
		}
	}
	for _, outside := range []bool{false, true} {
		r := attachable(&options.Options{PID: tid, Outside: outside})
		expect.True(t, r != nil && r.What == fmt.Sprintf("it is a thread of process %d", os.Getpid()),
			"outside %v: %+v", outside, r)
	}
}

// A process that ends while it is attached to has no diagnostics port any more. It is not called a process
// without one.
func TestEndsDuringAttach(t *testing.T) {
	cmd := exec.Command("true")
	must.Do(t, cmd.Start())
	r := &run{opt: &options.Options{PID: cmd.Process.Pid}, srv: &server{}}
	for runs(r.opt.PID) { // it is not reaped yet
		time.Sleep(time.Millisecond)
	}
	err := errors.New("it has no diagnostics port")
	expect.Equal(t, r.notLoaded(0, false, err).What, "it ended before the probe was loaded", "of a zombie")
	cmd.Wait()
	expect.Equal(t, r.notLoaded(0, false, err).What, "it ended before the probe was loaded", "of no process")
	r.opt.PID = os.Getpid()
	got := r.notLoaded(0, false, err).What
	expect.Equal(t, got, "the runtime does not load the probe: it has no diagnostics port", "of a live process")
}

// A library that is mapped in a chroot has another path for that process.
func TestWithin(t *testing.T) {
	const path = "/srv/jail/tmp/lib.so"
	for root, want := range map[string]string{"/": path, "": path, "/srv/jail": "/tmp/lib.so",
		"/srv/ja": path, "/home": path} {
		expect.Equal(t, within(root, path), want, root)
	}
}
