package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

// TestFullStdout: if the standard output is a full disk, no command ends with success.
func TestFullStdout(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no /dev/full")
	}
	defer full.Close()
	for _, args := range [][]string{{"version"}, {"info", self(t)}, {"info", "--json", self(t)}, {"doctor"},
		{"rules"}, {"record", "--help"}} {
		cmd := exec.Command(self(t), args...)
		cmd.Env = append(os.Environ(), "SEEDWALK_TEST_AS=tool")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &said
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != cli.ExitUnreadable ||
			!strings.Contains(said.String(), "no space left on device") {
			t.Errorf("%v: exit code %d, said %q", args, code, said.String())
		}
	}
}
