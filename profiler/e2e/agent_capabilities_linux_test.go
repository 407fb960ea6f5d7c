package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// With the capabilities of the manifest, the agent records a process of another user that has its own files,
// as in a pod. Without one of those that docs/agent.md calls necessary, it records nothing.
func TestAgentCapabilities(t *testing.T) {
	needs.Command(t, "unshare", "setpriv")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root can take capabilities away")
	}
	manifest := must.Get(os.ReadFile(filepath.Join(needs.Root(t), "docs", "deploy", "seedwalk-agent.yaml")))(t)
	all := strings.Split(string(regexp.MustCompile(`add: \[(.*)\]`).FindSubmatch(manifest)[1]), ", ")
	argv := append([]string{"unshare", "-m", "sh", "-c", ownTemp + ` && chmod 1777 /tmp && exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"`, "sh", needs.Root(t)}, app(t, "Demo", "61")...)
	pid := start(t, argv...).pid
	time.Sleep(time.Second)
	if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); !strings.HasPrefix(string(line), argv[7]) {
		t.Skip("SKIPPED-CHECK: another user cannot run a program of this tree")
	}
	if !recordsWith(t, pid, all, 20*time.Second) {
		t.Errorf("nothing is recorded with %v", all)
	}
	for _, name := range []string{"SYS_PTRACE", "DAC_OVERRIDE", "CHOWN"} {
		rest := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == name })
		if len(rest) != len(all)-1 || recordsWith(t, pid, rest, 4*time.Second) {
			t.Errorf("%s is not needed", name)
		}
	}
}

// recordsWith reports whether an agent with these capabilities begins to record a process.
func recordsWith(t *testing.T, pid int, capabilities []string, limit time.Duration) bool {
	t.Helper()
	set := "-all,+" + strings.ToLower(strings.Join(capabilities, ",+"))
	folder := t.TempDir()
	agent := start(t, "setpriv", "--bounding-set", set, "--inh-caps", set, tool(t), "agent", "--pid", fmt.Sprint(pid), "--interval", "5s", "--folder", folder, "--listen", "", "--cpu", "100")
	defer agent.stop(syscall.SIGTERM)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		partial, _ := filepath.Glob(filepath.Join(folder, "*.swrec.partial"))
		for _, p := range partial {
			if info, err := os.Stat(p); err == nil && info.Size() > 4096 { // it has samples
				return true
			}
		}
	}
	return false
}
