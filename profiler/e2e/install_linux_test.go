package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

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
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	p := readJSONProfile(t, file)
	if p.whole(t, 1, 900); !p.has("T.Run") {
		t.Error("no method of the program's is named")
	}

	r = runAlone(t, dir, alone, append([]string{seedwalk, "record", "--mode", "snapshot", "--"}, target...)...)
	if r.code != 125 || !strings.Contains(r.stderr, "libseedwalk_profiler.so") || !strings.Contains(r.stderr, "make build") {
		t.Errorf("without the library, exit code %d\n%s", r.code, r.stderr)
	}
	r = runAlone(t, dir, alone, seedwalk, "doctor")
	if r.code != 0 || !strings.Contains(r.stdout, "libseedwalk_profiler.so") || !strings.Contains(r.stdout, "Nothing stops a recording here.") {
		t.Errorf("doctor: exit code %d\n%s", r.code, r.stdout)
	}
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
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+downloaded, "GOMODCACHE="+cache, "GOBIN="+bin, "GOCACHE="+goEnv(t, "GOCACHE"),
		"GOFLAGS=-trimpath -modcacherw", "GOSUMDB=off", "GONOPROXY=none", "GOTOOLCHAIN=local", "GOENV=off", "GOWORK=off", "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
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
	args := []string{"archive", "--format=zip", "--prefix=" + installedModule + "@" + installedVersion + "/", "-o", file, git("write-tree"), "."}
	for name := range strings.FieldsSeq(git("ls-files", "*/go.mod")) {
		args = append(args, ":!"+strings.TrimSuffix(name, "/go.mod"))
	}
	git(args...)
}
