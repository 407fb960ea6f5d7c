package probe

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// target is a running program of testdata that loads the probe.
type target struct {
	f     *File
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// compiled builds testdata/NAME.c.
func compiled(t *testing.T, name string) (exe string) {
	t.Helper()
	exe = filepath.Join(t.TempDir(), name)
	c := exec.Command("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", exe, "testdata/"+name+".c", "-ldl", "-lpthread")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// startTarget starts a program and waits until its probe has connected.
func startTarget(t *testing.T, exe, library string, events uint32, least time.Duration) *target {
	t.Helper()
	dir := t.TempDir()
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"}))(t)
	t.Cleanup(func() { l.Close() })
	cmd := exec.Command(exe, library)
	cmd.Env = append(os.Environ(), "SEEDWALK_SOCKET="+filepath.Join(dir, "s"))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	f := toolEnd(t, l, cmd.Process.Pid, events, least)
	t.Cleanup(func() { f.Close() })
	return &target{f, cmd, in, bufio.NewScanner(out)}
}

// toolEnd is the tool's side of the socket. It returns the file of the probe that connects.
func toolEnd(t *testing.T, l *net.UnixListener, pid int, events uint32, least time.Duration) *File {
	t.Helper()
	for {
		l.SetDeadline(time.Now().Add(20 * time.Second))
		c, err := l.AcceptUnix()
		must.Do(t, err)
		first, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
		n, oob, _, _, err := c.ReadMsgUnix(first, control)
		if err != nil || n != 8 || binary.LittleEndian.Uint64(first) != Magic {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if oob == 0 { // a greeting without a file
			c.Close()
			continue
		}
		messages, _ := unix.ParseSocketControlMessage(control[:oob])
		fds, err := unix.ParseUnixRights(&messages[0])
		must.Do(t, err)
		f, err := Open(fds[0], pid)
		unix.Close(fds[0])
		must.Do(t, err)
		f.Want(events, uint64(least))
		c.Close()
		return f
	}
}
