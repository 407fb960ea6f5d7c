package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The .NET 10 single file: the runtime is linked into the executable, and the program was written by others.
func TestNet10SingleFile(t *testing.T) {
	azmcp := need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	out := filepath.Join(t.TempDir(), "out.json")
	r := startIn(t, []string{"AZURE_MCP_COLLECT_TELEMETRY=false"}, tool(t), "record", "--mode", "snapshot",
		"--rate", "200", "--duration", "5s", "--output", out, "--", azmcp, "server", "start")
	session(r.in, 6*time.Second)
	r.in.Close()
	time.AfterFunc(20*time.Second, func() { r.Process.Signal(syscall.SIGTERM) })
	r.wait()
	p := readJSONProfile(t, out)
	if p.whole(t, 500, 990); !strings.Contains(p.Runtime, "10.0") {
		t.Errorf("runtime %q\n%s", p.Runtime, r.errs.String())
	}
	checkNames(t, &p)
}

// checkNames checks the names in a program full of async methods and lambdas: no compiler-generated name may
// be left.
func checkNames(t *testing.T, p *jsonProfile) {
	t.Helper()
	async, raw := 0, 0
	for _, f := range p.Frames {
		switch {
		case f.Class != "managed":
		case strings.HasSuffix(f.Name, "(async)"):
			async++
		case strings.ContainsAny(f.Name, "`|+"), strings.Contains(f.Name, ".<"),
			strings.Contains(f.Name, "<>"):
			raw++
			t.Logf("a name as the compiler wrote it: %s", f.Name)
		}
	}
	expect.True(t, async != 0 && raw <= len(p.Frames)/100,
		"%d frames, %d names of async methods, %d names as the compiler wrote them", len(p.Frames), async,
		raw)
}

// session talks to an MCP server for a while, to give it work.
func session(w interface{ Write([]byte) (int, error) }, d time.Duration) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	w.Write([]byte(hello + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		w.Write([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}` + "\n"))
	}
}

// A target is killed in the middle of a recording: earlier samples are kept, and the exit code is the
// target's.
func TestKilledTarget(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	go func() {
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			if _, err := os.Stat(pidFile); err == nil {
				time.Sleep(3 * time.Second)
				exec.Command("sh", "-c", "kill -9 $(cat "+pidFile+")").Run()
				return
			}
		}
	}()
	r := record(t, "--mode snapshot --pid-file "+pidFile, app(t, "Truth", "30")...)
	expect.True(t, r.code == 128+9 && r.Samples >= 100,
		"exit code %d, %d samples\n%s", r.code, r.Samples, r.stderr)
}

// A stack larger than the room for its copy: it has a gap, and the managed frames are still there.
func TestStackLargerThanItsCopy(t *testing.T) {
	r := recordRaw(t, "--mode snapshot --quiet --stack-bytes 8192", app(t, "Truth", "3")...)
	r.well(t, 0, "TRUTH DONE\n")
	truncated, deep := 0, 0
	for _, s := range r.samples {
		if s.Result.Gap != merge.GapNone && s.Result.Gap != merge.GapTruncated {
			continue
		}
		if s.Result.Gap == merge.GapTruncated {
			truncated++
		}
		if s.Result.Managed > 1000 {
			deep++
		}
	}
	expect.True(t, truncated != 0 && deep != 0,
		"%d stacks cut, %d deep ones with their managed frames: want some of both", truncated, deep)
}

func TestOldRuntime(t *testing.T) {
	old, lib := need(t, "out", "bin", "oldclr"), need(t, "out", "bin", "libseedwalk_profiler.so")
	for _, c := range []struct{ version, want string }{
		{"2", "this runtime is too old: it has no ICorProfilerInfo3"},
		{"3", "this runtime is too old: it cannot suspend itself for a profiler (ICorProfilerInfo10); use .NET Core 3.0 or later"},
	} {
		mark := filepath.Join(t.TempDir(), "refused") // keeps the tool from guessing the reason
		r := run(t, time.Minute,
			[]string{"SEEDWALK_SOCKET=/nowhere", "SEEDWALK_REFUSED=" + mark}, old, lib, c.version)
		_, err := os.Stat(mark)
		expect.Equal(t, err, nil)
		expect.True(t, r.code == 0 && r.stdout == "80004005\n" && strings.Contains(r.stderr, c.want) &&
			strings.Count(r.stderr, "\n") == 1, "version %s: %d %q %q", c.version, r.code, r.stdout, r.stderr)
	}
}

// Each failure gives one clear line, and the target runs as if it were not recorded.
func TestNothingToSample(t *testing.T) {
	demo := app(t, "Demo", "0.2")
	out := filepath.Join(t.TempDir(), "out.json")
	for _, c := range []struct {
		name string
		env  []string
		argv []string
		code int
		line string
	}{
		{"not a .NET program", nil, []string{"sh", "-c", "exit 7"}, 7, "no .NET runtime loaded"},
		{"another profiler", []string{"CORECLR_PROFILER={11111111-1111-1111-1111-111111111111}",
			"CORECLR_ENABLE_PROFILING=1"}, demo, 0, "CORECLR_PROFILER"},
		{"diagnostics off", []string{"DOTNET_EnableDiagnostics=0"}, demo, 0, "DOTNET_EnableDiagnostics"},
		{"no such command", nil, []string{"/no/such/program"}, 127, "/no/such/program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, time.Minute, c.env,
				append([]string{tool(t), "record", "--mode", "snapshot", "--quiet", "--output", out, "--"},
					c.argv...)...)
			r.ends(t, c.code, r.stderr, c.line)
		})
	}
}

// A library without symbols, sections, or a build id is walked too.
func TestStrippedLibrary(t *testing.T) {
	strip := needs.Command(t, "strip")
	dir := t.TempDir()
	for _, f := range []string{"Demo.exe", "libdemo.so"} {
		copied(t, filepath.Join(dir, f), need(t, "out", "samples", f))
	}
	must.Run(t, exec.Command(strip, "--strip-all", "-R", ".note.gnu.build-id", "-R", ".comment",
		filepath.Join(dir, "libdemo.so")))
	r := record(t, "--mode snapshot --rate 200",
		hosted(t, runtime9(t), filepath.Join(dir, "Demo.exe"), "2")...)
	r.whole(t, 500, 980)
	r.ok(t)
}

func TestDoctor(t *testing.T) {
	r := run(t, time.Minute, []string{"DOTNET_ROOT="}, tool(t), "doctor")
	expect.Contains(t, r.stdout, "profiler")
	t.Log(r.stdout)
	r = run(t, time.Minute,
		[]string{"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={11111111-1111-1111-1111-111111111111}"},
		tool(t), "doctor")
	expect.Contains(t, r.stdout, "runs beside it")
}

// ownRuntime is a folder with the runtime and the truth program; the named libraries are separate copies.
func ownRuntime(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(tempdir.New(t), "runtime")
	linked(t, dir, runtime9(t))
	samples := filepath.Dir(need(t, "out", "samples", "Truth.exe"))
	for _, name := range []string{"Truth.exe", "libtruth.so"} {
		copied(t, filepath.Join(dir, name), filepath.Join(samples, name))
	}
	for _, name := range names {
		copied(t, filepath.Join(dir, name), filepath.Join(dir, name))
	}
	return dir
}

// The runtime and a library are replaced on disk while they run, as by an upgrade of their packages. The
// stacks of record, record --outside, and stack still agree with the threads' own records. The tool opens the
// mapped files by the kernel's names for them (/proc/PID/map_files), which needs a privilege. Without it, the
// tool reads the mapped memory.
func TestReplacedLibraries(t *testing.T) {
	plain, err := exec.LookPath("setpriv")
	for _, c := range []struct {
		name    string
		without []string // removes the privilege
	}{{"mapped files", nil}, {"memory", []string{plain, "--bounding-set=-all", "--inh-caps=-all", "--"}}} {
		t.Run(c.name, func(t *testing.T) {
			switch {
			case c.without == nil && os.Geteuid() != 0:
				t.Skip("SKIPPED-CHECK: only root may open files by their mappings")
			case c.without != nil && err != nil:
				t.Skip("SKIPPED-CHECK: no setpriv (Debian package util-linux)")
			}
			replaced := []string{"libcoreclr.so", "libtruth.so"}
			dir := ownRuntime(t, replaced...)
			p := attached(t, append(c.without, hosted(t, dir, filepath.Join(dir, "Truth.exe"), "120")...)...)
			for _, name := range replaced { // a new file is renamed over the old; the mapped one remains
				other := filepath.Join(dir, "new")
				must.True(t, os.WriteFile(other, []byte("\x7fELF and nothing like it"), 0o755) == nil &&
					os.Rename(other, filepath.Join(dir, name)) == nil, "not replaced")
			}
			b := readFile(t, "/proc/"+p.id+"/maps")
			must.True(t, strings.Contains(b, "libcoreclr.so (deleted)") &&
				strings.Contains(b, "libtruth.so (deleted)"), "nothing is deleted in the mappings")
			r := run(t, time.Minute, nil, append(slices.Clone(c.without), tool(t), "stack", p.id)...)
			expect.True(t, r.code == 0 && strings.Count(r.stdout, "T.Run") >= 10 &&
				strings.Count(r.stdout, "the rest is missing") <= 1,
				"stack: %d\n%s%s", r.code, r.stderr, r.stdout)
			for _, flag := range []string{"", " --outside"} {
				r := recordRawBy(t, c.without, "--rate 100 --duration 2s --pid "+p.id+flag)
				r.ok(t)
				k := newChecker(t)
				k.recorded(t, r)
				k.few(t, 60, 97)
			}
			expect.True(t, len(standing(t, p.pid)) == 0 && p.out.String() == "",
				"threads are stopped, or the program printed %q", p.out.String())
		})
	}
}
