package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestWaitsDeadSocket: a port without a server, and servers whose answers no runtime gives.
func TestWaitsDeadSocket(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  func(conn net.Conn) // nil: no server
		stderr string
		code   int
	}{
		{"no server", nil, "does not answer", 3},
		{"it hangs up", func(net.Conn) {}, "no answer from the runtime", 1},
		{"it hangs up within an answer", func(conn net.Conn) { conn.Write([]byte("DOTNET_IPC_V1\x00")) },
			"no answer from the runtime", 1},
		{"it says something else",
			func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			"another protocol", 1},
	} {
		tmp := tempdir.New(t)
		target := exec.Command("sleep", "60")
		target.Env = []string{"TMPDIR=" + tmp}
		must.Do(t, target.Start())
		start := procstat.Read(target.Process.Pid).Field(procstat.Start)
		port := must.Get(net.Listen("unix",
			filepath.Join(tmp, fmt.Sprintf("dotnet-diagnostic-%d-%s-socket", target.Process.Pid, start))))(t)
		if c.serve == nil {
			port.(*net.UnixListener).SetUnlinkOnClose(false)
			port.Close()
		} else {
			go func() {
				for {
					conn, err := port.Accept()
					if err != nil {
						return
					}
					conn.Read(make([]byte, 1024))
					c.serve(conn)
					conn.Close()
				}
			}()
		}
		stdout, stderr, code, _ := tool(t, "waits", "--pid",
			fmt.Sprint(target.Process.Pid), "--duration", "1s")
		port.Close()
		target.Process.Kill()
		target.Wait()
		expect.True(t, code == c.code && stdout == "" && strings.Count(stderr, "\n") == 1 &&
			strings.Contains(stderr, c.stderr), "%s: exit code %d\n%s%s", c.name, code, stdout, stderr)
	}
}

// A reader that closes the pipe leaves no temporary folder behind.
func TestWaitsClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	r.Close()
	defer w.Close()
	tmp := tempdir.New(t)
	cmd := exec.Command(self(t), "waits", "--", "true") // says that it is no .NET program
	cmd.Env = append(os.Environ(), "SEEDWALK_TEST_AS=tool", "TMPDIR="+tmp)
	cmd.Stderr = w
	err = cmd.Run()
	expect.Equal(t, err, nil)
	left, err := os.ReadDir(tmp)
	expect.True(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}
