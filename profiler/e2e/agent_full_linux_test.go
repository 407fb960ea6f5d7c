package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a full disk the agent reports why nothing is kept, and leaves no part of a file. It goes on once there
// is room, in the same session.
func TestAgentFullDisk(t *testing.T) {
	folder, port := t.TempDir(), freePorts(t)[0]
	if err := syscall.Mount("seedwalk", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED-CHECK: no small file system can be mounted: %v", err)
	}
	defer syscall.Unmount(folder, syscall.MNT_DETACH)
	filler := filepath.Join(folder, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	target := idleProcess(t, "timer")
	agent := start(t, tool(t), "agent", "--pid", target.id, "--interval", "5s", "--folder", folder, "--push", fmt.Sprintf("otlp+http://127.0.0.1:%d", freePorts(t)[0]),
		"--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "100")
	counts := func(line string) bool {
		return strings.Contains(agent.errs.String(), "serving") && strings.Contains(metricsOf(t, port), "\nseedwalk_agent_"+line)
	}
	until(t, "a recording has failed", func() bool { return counts(`failures_total{reason="`) && !counts(`failures_total{reason="write"} 0`) })
	left, _ := filepath.Glob(filepath.Join(folder, "*.swrec*"))
	if said := agent.errs.String(); len(left) > 0 || !strings.Contains(said, "(write)") || !strings.Contains(said, "no space left") {
		t.Errorf("%v left; messages:\n%s", left, said)
	}
	os.Remove(filler)
	until(t, "there are recordings", func() bool { return !counts("recordings_total 0\n") })
	agent.stop(syscall.SIGTERM)
	if kept, _ := filepath.Glob(filepath.Join(folder, "*.swrec")); len(kept) == 0 || strings.Contains(agent.errs.String(), "(begin)") || strings.Contains(agent.errs.String(), "(end)") {
		t.Errorf("%v kept; messages:\n%s", kept, agent.errs.String())
	}
}
