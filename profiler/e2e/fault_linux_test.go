package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
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
		err := os.WriteFile(filepath.Join(dir, f), []byte(readFile(t, need(t, "out", "samples", f))), 0o755)
		must.Do(t, err)
	}
	must.Run(t, exec.Command(strip, "--strip-all", "-R", ".note.gnu.build-id", "-R", ".comment",
		filepath.Join(dir, "libdemo.so")))
	r := record(t, "--mode snapshot --rate 200", need(t, "out", "bin", "swhost"), runtime9(t),
		filepath.Join(dir, "Demo.exe"), "2")
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
