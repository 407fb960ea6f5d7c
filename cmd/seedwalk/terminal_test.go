//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pty"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func init() { withSignals = echoSignals }

// echoSignals is a target that reports every signal and ends at TERM.
func echoSignals() int {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM)
	fmt.Println("ready")
	for s := range c {
		fmt.Println("got", s)
		if s == syscall.SIGTERM {
			return 9
		}
	}
	return 98
}

// awaitText reads the terminal up to a text and returns what came before it.
func awaitText(t *testing.T, r *bufio.Reader, text string) string {
	t.Helper()
	var b strings.Builder
	for !strings.HasSuffix(b.String(), text) {
		c, err := r.ReadByte()
		must.True(t, err == nil, "%v while waiting for %q after %q", err, text, b.String())
		b.WriteByte(c)
	}
	return b.String()
}

// A Ctrl-C on the terminal reaches the command once, though the tool passes
// other signals on.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	master, slave := pty.Open(t, 24, 70)
	exe := self(t)
	out := filepath.Join(tempdir.New(t), "a.folded")
	cmd := exec.Command(exe, "record", "--output", out, "--", exe)
	cmd.Env = append(os.Environ(), "SEEDWALK_TEST_AS=tool",
		"SEEDWALK_TEST_SIGNALS=1", "SEEDWALK_PROFILER="+exe)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, cmd.Start())
	slave.Close()
	r := bufio.NewReader(master)
	awaitText(t, r, "ready")
	line := awaitText(t, r, "samples")
	expect.True(t, strings.Contains(line, "\r"), "no progress line: %q", line)
	master.Write([]byte{3})
	awaitText(t, r, "got interrupt")
	cmd.Process.Signal(syscall.SIGUSR1)
	between := awaitText(t, r, "got user defined signal 1")
	expect.True(t, !strings.Contains(between, "interrupt"), "the command got a second INT: %q", between)
	cmd.Process.Signal(syscall.SIGTERM)
	awaitText(t, r, "got terminated")
	awaitText(t, r, "wrote "+out)
	cmd.Wait()
	expect.Equal(t, cmd.ProcessState.ExitCode(), 9, "exit code")
	b, err := os.ReadFile(out)
	expect.True(t, err == nil && strings.HasSuffix(string(b), " 7\n"), "%v, %q", err, b)
}

// Not even root may write there.
func TestNoPermission(t *testing.T) {
	_, errOut, code, _ := tool(t, "record", "--output", "/sys/a.html", "--", "x")
	expect.True(t, code == 125 &&
		strings.HasSuffix(errOut, "permission denied; choose a directory you may write to with --output\n"),
		"exit code %d, %q", code, errOut)
}
