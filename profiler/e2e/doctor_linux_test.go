package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
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
		{"gone", func(*testing.T) string { return "4194303" }, "there is no process 4194303",
			"there is no such process", "there is no process 4194303", 1, 125, 3, false},
		{"native", sleeper, "none is mapped: a native program",
			"it has no diagnostics port", "", 1, 125, 0, false},
		{"a zombie", func(t *testing.T) string {
			cmd := exec.Command("true")
			must.Do(t, cmd.Start())
			t.Cleanup(func() { cmd.Wait() })
			until(t, "it has ended", func() bool { return procstat.Read(cmd.Process.Pid).Ended() })
			return fmt.Sprint(cmd.Process.Pid)
		}, "has ended (zombie)", "has ended (zombie)", "has ended (zombie)", 1, 125, 3, false},
		{"a thread of the kernel", func(t *testing.T) string {
			if !procstat.Read(2).Kernel() {
				t.Skip("SKIPPED-CHECK: no thread of the kernel is visible here")
			}
			return "2"
		}, "it is a thread of the kernel", "it is a thread of the kernel", "is a thread of the kernel",
			1, 125, 3, true},
		{".NET", func(t *testing.T) string {
			return attached(t, app(t, "Truth", "60")...).id
		}, "Everything works with this process", "", "", 0, 0, 0, false},
		{"stopped", func(t *testing.T) string {
			p := start(t, "sleep", "60")
			p.freeze()
			return p.id
		}, "is stopped", "it has no diagnostics port", "", 1, 125, 0, false},
		{"stopped .NET", func(t *testing.T) string {
			p := attached(t, app(t, "Truth", "60")...)
			p.freeze()
			return p.id
		}, "is stopped", "kill -CONT", "", 1, 125, 0, false},
		{"of namespaces of its own", func(t *testing.T) string {
			return fmt.Sprint(child(t,
				start(t, "unshare", "--pid", "--mount", "--fork", "--kill-child", "sleep", "60"),
				func(pid int) bool {
					return strings.HasPrefix(readFile(t, fmt.Sprintf("/proc/%d/cmdline", pid)), "sleep")
				}))
		}, "the process has its own namespaces: mnt, pid; its PID there is 1",
			"no diagnostics port", "", 1, 125, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("SKIPPED-CHECK: namespaces need root")
			}
			pid := c.pid(t)
			began := time.Now()
			d := seedwalk(t, "doctor", "--pid", pid)
			expect.True(t, time.Since(began) <= diagnostics.DefaultTimeout,
				"doctor has waited for an answer of the runtime")
			expect.True(t, d.code == c.doctors && strings.Contains(d.stdout, c.doctor),
				"doctor: %d\n%s%s", d.code, d.stdout, d.stderr)
			r := seedwalk(t, "record", "--quiet", "--pid", pid, "--duration", "1s", "--output",
				filepath.Join(t.TempDir(), "o.folded"))
			if r.code != c.records || !strings.Contains(r.stderr, c.record) ||
				c.record != "" && (strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, ";")) {
				t.Errorf("record: %d %q", r.code, r.stderr)
			}
			s := seedwalk(t, "stack", pid)
			if s.code != c.stck || !strings.Contains(s.stderr, c.stack) ||
				c.stack != "" && strings.Count(s.stderr, "\n") != 1 {
				t.Errorf("stack: %d %q", s.code, s.stderr)
			}
		})
	}
}

// A library of Go may be in a .NET process. doctor and record then name the library once, in the same words,
// with its effect and a remedy. Without such a library, they print nothing about Go.
func TestDoctorGo(t *testing.T) {
	library := need(t, "out", "samples", "libgolib.so")
	name := map[string]string{"doctor": library, "record": filepath.Base(library)}
	for _, what := range []string{"go", "calm"} {
		pid := attached(t, app(t, "Survive", "30", what)...).id
		d := seedwalk(t, "doctor", "--pid", pid)
		r := seedwalk(t, "record", "--pid", pid, "--duration", "2s", "--output",
			filepath.Join(t.TempDir(), "o.folded"))
		for of, text := range map[string]string{"doctor": d.stdout, "record": r.stderr} {
			words := strings.Join(strings.Fields(text), " ")
			if n := strings.Count(words, "127320)"); what == "go" &&
				(n != 1 || !strings.Contains(words, name[of]+" is a library of Go: ") ||
					!strings.Contains(words, "in a process of its own")) ||
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
	exe := filepath.Join(dir, "seedwalk")
	copied(t, exe, tool(t))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stack", pid}, "belongs to user 0, and seedwalk runs as user 65534: run it as that user or as root"},
		{[]string{"record", "--pid", pid, "--output", filepath.Join(dir, "o.folded")},
			"it belongs to user 0; run seedwalk as that user"},
		{[]string{"record", "--outside", "--pid", pid, "--output", filepath.Join(dir, "o.folded")},
			"belongs to user 0, and seedwalk runs as user 65534"},
		{[]string{"doctor", "--pid", pid}, "belongs to user 0, and seedwalk runs as user 65534"},
	} {
		cmd := exec.Command(exe, c.args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v\n%s", c.args[:1], err, out)
		}
	}
}

const (
	installedModule  = "github.com/seedwalk/seedwalk"
	installedVersion = "v0.0.0-test"
)

// A tool from `go install .../cmd/seedwalk@VERSION`, without the checkout, records a .NET program. It names
// what it lacks.
func TestGoInstall(t *testing.T) {
	target := app(t, "Truth", "4")
	dir := tempdir.New(t)
	seedwalk := goInstall(t, dir)
	alone := emptyHome(t, dir)

	file := filepath.Join(dir, "out.json")
	r := runAlone(t, dir, alone, append([]string{seedwalk, "record", "--output", file, "--"}, target...)...)
	r.ok(t)
	p := readJSONProfile(t, file)
	p.whole(t, 1, 900)
	expect.True(t, p.has("T.Run"), "no method of the program's is named")

	r = runAlone(t, dir, alone,
		append([]string{seedwalk, "record", "--mode", "snapshot", "--"}, target...)...)
	r.ends(t, 125, r.stderr, "libseedwalk_profiler.so", "make build")
	r = runAlone(t, dir, alone, seedwalk, "doctor")
	r.ends(t, 0, r.stdout, "libseedwalk_profiler.so", "Nothing stops a recording here.")
}

// emptyHome is the environment of a user who has nothing but the tool.
func emptyHome(t *testing.T, dir string) []string {
	t.Helper()
	env := []string{"PATH=/usr/bin:/bin"}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "TMPDIR"} {
		path := filepath.Join(dir, "alone", name)
		must.Do(t, os.MkdirAll(path, 0o755))
		env = append(env, name+"="+path)
	}
	return env
}

// runAlone runs a command in an empty folder, with its own environment.
func runAlone(t *testing.T, dir string, env []string, argv ...string) result {
	t.Helper()
	work := must.Get(os.MkdirTemp(dir, "work-"))(t)
	return run(t, 2*time.Minute, nil, append(append([]string{"env", "-i", "-C", work}, env...), argv...)...)
}

// goInstall installs the tool from a module proxy that has this checkout, into an empty module cache. The
// dependencies are taken from this machine's module cache.
func goInstall(t *testing.T, dir string) string {
	t.Helper()
	needs.Command(t, "go", "git")
	proxy, bin, cache := filepath.Join(dir, "proxy"), filepath.Join(dir, "bin"), filepath.Join(dir, "modules")
	writeProxy(t, filepath.Join(proxy, installedModule, "@v"))
	downloaded := filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")
	cmd := exec.Command("go", "install", installedModule+"/cmd/seedwalk@"+installedVersion)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+downloaded, "GOMODCACHE="+cache,
		"GOBIN="+bin, "GOCACHE="+goEnv(t, "GOCACHE"),
		"GOFLAGS=-trimpath -modcacherw", "GOSUMDB=off", "GONOPROXY=none", "GOTOOLCHAIN=local",
		"GOENV=off", "GOWORK=off", "HOME="+dir)
	must.Run(t, cmd)
	return filepath.Join(bin, "seedwalk")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out := must.Get(exec.Command("go", "env", name).Output())(t)
	return strings.TrimSpace(string(out))
}

// writeProxy writes the files of a module proxy for this checkout.
func writeProxy(t *testing.T, dir string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o755))
	top := needs.Root(t)
	info := fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, installedVersion)
	writeTo(t, filepath.Join(dir, "list"), installedVersion+"\n")
	writeTo(t, filepath.Join(dir, installedVersion+".info"), info)
	writeTo(t, filepath.Join(dir, installedVersion+".mod"), readFile(t, filepath.Join(top, "go.mod")))
	archiveModule(t, top, filepath.Join(dir, installedVersion+".zip"))
}

func writeTo(t *testing.T, path string, data string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(data), 0o644))
}

// archiveModule writes the files that git tracks or would add, without other modules, as they are in the
// working tree.
func archiveModule(t *testing.T, top, file string) {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", top}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+file+".index")
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("SKIPPED-CHECK: %s is no git checkout: git %v: %v", top, args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("add", "-A")
	args := []string{"archive", "--format=zip", "--prefix=" + installedModule + "@" + installedVersion + "/",
		"-o", file, git("write-tree"), "."}
	for name := range strings.FieldsSeq(git("ls-files", "*/go.mod")) {
		args = append(args, ":!"+strings.TrimSuffix(name, "/go.mod"))
	}
	git(args...)
}
