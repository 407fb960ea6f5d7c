package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A program that does nothing is found by its mark, together with the call it waits in.
func TestDiagnose(t *testing.T) {
	mark := fmt.Sprintf("%s=%d.%d", runMark, os.Getpid(), time.Now().UnixNano())
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var got string
	want := fmt.Sprintf("process %d sleep\n  thread %d", cmd.Process.Pid, cmd.Process.Pid)
	for range 50 { // until it has become the program
		if got = diagnose(mark); strings.Contains(got, want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s\nwant %q", got, want)
}

// If a host reports that its program hangs, the program is examined once, whatever the wording.
func TestHangWatcher(t *testing.T) {
	looks := 0
	w := &hangWatcher{look: func() { looks++ }}
	cmd := exec.Command("sh", "-c", "echo all is well >&2; printf 'swhost: it ' >&2; sleep 0.1; echo hangs >&2; echo launch: it hangs >&2")
	cmd.Stderr = w
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if looks != 1 || w.String() != "all is well\nswhost: it hangs\nlaunch: it hangs\n" {
		t.Errorf("%d looks at %q", looks, w.String())
	}
}
