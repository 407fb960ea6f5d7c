package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The command's exit code and output are unchanged, and the file has its stacks.
func TestCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.stacks")
	out, errOut, code, _ := tool(t, "capture", "--rate", "500", "--output", path, "--", "sh", "-c",
		"sleep 0.3; echo done; exit 7")
	if strings.Contains(errOut, "no stack was taken") {
		t.Skip("SKIPPED-CHECK: this machine permits no process to be read: " + errOut)
	}
	expect.True(t, code == 7 && out == "done\n" && strings.Count(errOut, "\n") == 1,
		"exit code %d, stdout %q, stderr %q", code, out, errOut)
	f, err := capture.Read(path)
	must.True(t, err == nil && len(f.Stacks) > 0, "no stacks: %v", err)
}

func TestCaptureOfNobody(t *testing.T) {
	refused(t, []wrongUse{
		{"no such process", []string{"capture", "--pid", "4194305"}, 125, "there is no process 4194305"},
		{"no such command", []string{"capture", "--", "no-such-program"}, 127, "not found"},
		{"no program", []string{"capture", "--", "/dev/null"}, 126, "permission denied"},
	})
}
