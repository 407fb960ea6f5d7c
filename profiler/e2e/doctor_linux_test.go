package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// doctor, record --pid and stack print one line for processes of each kind, with a remedy.
func TestProcessesOfAllKinds(t *testing.T) {
	sleeper := func(t *testing.T) string { return start(t, "sleep", "60").id }
	for _, c := range []struct {
		name                   string
		pid                    func(t *testing.T) string
		doctor, record, stack  string // parts of the lines
		doctors, records, stck int    // exit codes
		root                   bool
	}{
		{"gone", func(*testing.T) string { return "4194303" }, "there is no process 4194303", "there is no such process", "there is no process 4194303", 1, 125, 3, false},
		{"native", sleeper, "none is mapped: a native program", "it has no diagnostics port", "", 1, 125, 0, false},
		{"a zombie", func(t *testing.T) string {
			cmd := exec.Command("true")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Wait() })
			until(t, "it has ended", func() bool { return dead(cmd.Process.Pid) })
			return fmt.Sprint(cmd.Process.Pid)
		}, "has ended (zombie)", "no diagnostics port", "waits for its parent", 1, 125, 3, false},
		{".NET", func(t *testing.T) string {
			return attached(t, app(t, "Truth", "60")...).id
		}, "Everything works with this process", "", "", 0, 0, 0, false},
		{"stopped", func(t *testing.T) string {
			p := start(t, "sleep", "60")
			p.freeze()
			return p.id
		}, "is stopped", "it has no diagnostics port", "", 1, 125, 0, false},
		{"of namespaces of its own", func(t *testing.T) string {
			return fmt.Sprint(child(t, start(t, "unshare", "--pid", "--mount", "--fork", "--kill-child", "sleep", "60"), func(pid int) bool {
				return strings.HasPrefix(readFile(t, fmt.Sprintf("/proc/%d/cmdline", pid)), "sleep")
			}))
		}, "the process has its own namespaces: mnt, pid; its number there is 1", "no diagnostics port", "", 1, 125, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("SKIPPED-CHECK: namespaces need root")
			}
			pid := c.pid(t)
			d := seedwalk(t, "doctor", "--pid", pid)
			if d.code != c.doctors || !strings.Contains(d.stdout, c.doctor) {
				t.Errorf("doctor: %d\n%s%s", d.code, d.stdout, d.stderr)
			}
			r := seedwalk(t, "record", "--quiet", "--pid", pid, "--duration", "1s", "--output", filepath.Join(t.TempDir(), "o.folded"))
			if r.code != c.records || !strings.Contains(r.stderr, c.record) || c.record != "" && (strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, ";")) {
				t.Errorf("record: %d %q", r.code, r.stderr)
			}
			s := seedwalk(t, "stack", pid)
			if s.code != c.stck || !strings.Contains(s.stderr, c.stack) || c.stack != "" && strings.Count(s.stderr, "\n") != 1 {
				t.Errorf("stack: %d %q", s.code, s.stderr)
			}
		})
	}
}

// If a library of Go is in a .NET process, doctor and a recording name it in the same words, once, with its
// effect and a remedy. Without one they print nothing about Go.
func TestDoctorGo(t *testing.T) {
	library := need(t, "out", "samples", "libgolib.so")
	name := map[string]string{"doctor": library, "record": filepath.Base(library)}
	for _, what := range []string{"go", "calm"} {
		pid := attached(t, app(t, "Survive", "30", what)...).id
		d := seedwalk(t, "doctor", "--pid", pid)
		r := seedwalk(t, "record", "--pid", pid, "--duration", "2s", "--output", filepath.Join(t.TempDir(), "o.folded"))
		for of, text := range map[string]string{"doctor": d.stdout, "record": r.stderr} {
			words := strings.Join(strings.Fields(text), " ")
			if n := strings.Count(words, "127320)"); what == "go" && (n != 1 || !strings.Contains(words, name[of]+" is a library of Go: ") || !strings.Contains(words, "by a process of its own")) ||
				what != "go" && (n != 0 || strings.Contains(words, "library of Go")) {
				t.Errorf("%s, %s:\n%s", what, of, text)
			}
		}
	}
}

// For a process of another user, each way prints in one line what is missing.
func TestNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: becoming another user needs root")
	}
	pid := fmt.Sprint(os.Getpid())
	dir := must.Get(os.MkdirTemp("", "nobody"))(t)
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o777)
	copied := filepath.Join(dir, "seedwalk")
	if b, err := os.ReadFile(tool(t)); err != nil || os.WriteFile(copied, b, 0o755) != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stack", pid}, "belongs to user 0 and we are 65534: run seedwalk as that user or as root"},
		{[]string{"record", "--pid", pid, "--output", filepath.Join(dir, "o.folded")}, "it belongs to user 0; run seedwalk as that user"},
		{[]string{"record", "--outside", "--pid", pid, "--output", filepath.Join(dir, "o.folded")}, "belongs to user 0 and we are 65534"},
		{[]string{"doctor", "--pid", pid}, "belongs to user 0, and seedwalk runs as user 65534"},
	} {
		cmd := exec.Command(copied, c.args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v\n%s", c.args[:1], err, out)
		}
	}
}
