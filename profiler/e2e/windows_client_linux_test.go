package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// clientDLL builds the example client.c with mingw, linked with the client library as the test names it.
func clientDLL(t *testing.T, dir, mode, library string) string {
	t.Helper()
	cc, capi, out := mingw(t), filepath.Join(root, "capi"), filepath.Join(dir, "profiler.dll")
	library = filepath.Join(dir, library)
	for _, argv := range [][]string{
		{filepath.Join(capi, "client", "build.sh"), mode, library},
		{cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I" + capi,
			"-I" + filepath.Join(capi, "client"), "-shared", "-o", out,
			filepath.Join(capi, "examples", "client.c"), library, "-static", "-lpthread"},
	} {
		run(t, time.Minute, []string{"CC=" + cc}, argv...).ok(t)
	}
	functions, end := must.Get(pe.Open(out))(t).AMD64(), uint32(0)
	for i := range functions.Len() { // ld -r gives wrong addresses
		fn := functions.Entry(i)
		must.True(t, fn.Begin >= end, "%s: the function at %#x begins in another", out, fn.Begin)
		end = fn.End
	}
	return out
}

// clientRun is a run of SingleFile.exe on .NET 10 with the profiler of the client library.
type clientRun struct {
	dir, library string
	raw, out     string // files of the helper and of the profiler
	engine       string
}

// newClientRun names the files of a run. Its folder's name is on the command line of the helper.
func newClientRun(t *testing.T, library string) *clientRun {
	t.Helper()
	need(t, single10)
	dir := tempdir.New(t)
	return &clientRun{dir, library, filepath.Join(dir, "raw"), filepath.Join(dir, "out"),
		need(t, "out", "windows", "seedwalk.exe")}
}

// start starts the program. limit is how long it runs, in tens of seconds.
func (c *clientRun) start(t *testing.T, program, limit string) *process {
	t.Helper()
	env := profiled(windowsPath(c.library), "SEEDWALK_ENGINE="+windowsPath(c.engine),
		"SEEDWALK_RAW="+windowsPath(c.raw), "SAMPLER_OUT="+windowsPath(c.out), "SWHOST_LIMIT=120")
	return startIn(t, env, wine(t, "launch.exe", need(t, "out", "windows", "shim.dll"), program, limit)...)
}

// ended waits for the program. It must end as it does without a profiler, and no helper may outlive it.
func (c *clientRun) ended(t *testing.T, p *process) clientSaw {
	t.Helper()
	p.wait()
	said := strings.ReplaceAll(p.out.String()+p.errs.String(), "\r", "")
	if !native && strings.Contains(said, executionEngine) {
		fmt.Printf("UNSTABLE ENVIRONMENT %s: .NET 10.0.9 in Wine: %s\n", t.Name(), executionEngine)
		noHelper(t, c.helper())
		return clientSaw{died: 1}
	}
	expect.True(t, p.err == nil && said == singleFile.says+"\n",
		"the program ended with %v and said %q", p.err, said)
	noHelper(t, c.helper())
	saw := readClient(t, c.out)
	t.Logf("%d stacks, %d complete; %d copies, %d complete; opened %d times, %s", saw.samples,
		saw.complete, saw.copies, saw.whole, saw.opened, saw.problem)
	return saw
}

// executionEngine is the error with which .NET 10.0.9 in Wine dies now and then if a profiler requests
// exceptions, also one that samples nothing. Such a run does not count.
const executionEngine = "0x80131506"

// helper is a pattern for the command line of this run's helper.
func (c *clientRun) helper() string {
	return "seedwalk engine .*" + regexp.QuoteMeta(filepath.Base(c.dir))
}

// sampled waits until the profiler has received stacks, and returns the number of the helper's process. It
// returns "" if there are none within tens of seconds.
func (c *clientRun) sampled(t *testing.T, tens int) string {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Duration(tens)*10*time.Second; time.Sleep(pollEvery) {
		var s clientSaw
		b, _ := os.ReadFile(c.out)
		if s.scan(string(b)); s.samples > 0 {
			pids := helpersLike(c.helper())
			must.Equal(t, len(pids), 1, "helpers %v", pids)
			return pids[0]
		}
	}
	return ""
}

const pollEvery = 100 * time.Millisecond

// A profiler that is linked with the client library samples a program of .NET 10 on Windows. Each complete
// stack is possible for its thread, and copies arrive. The program works as it does without the profiler,
// also if the helper is killed or missing. When the program ends, its helper ends.
func TestWindowsClient(t *testing.T) {
	program := need(t, "out", "windows", "SingleFile.exe")
	dll := clientDLL(t, tempdir.New(t), "shared", "seedwalk_client.dll")

	t.Run("stacks", func(t *testing.T) {
		library := clientDLL(t, tempdir.New(t), "archive", "libseedwalk_client.a")
		x := newShapes(singleFile)
		all := clientSaw{cpu: map[string]float64{}}
		for n := 0; n < maxClientRuns && min(x.m.whole, all.samples) < enoughStacks; n++ {
			helperKilled(t, newClientRun(t, library), program, min(2+3*n, 9), x, &all)
		}
		t.Logf("%d walks, %d complete, of the others %d in Wine's own system calls; gaps %v", x.m.total,
			x.m.whole, x.m.outside, x.m.gaps)
		t.Logf("complete stacks, all as their threads call, by thread: %v", x.stacks)
		expect.True(t, x.m.whole >= enoughStacks && x.m.whole*100 >= (x.m.total-x.m.outside)*99,
			"only %d of %d stacks are complete", x.m.whole, x.m.total-x.m.outside)
		native, managed := all.cpu["BaseThreadInitThunk"], all.cpu["StartCallback"]
		expect.True(t, all.samples >= enoughStacks && native != 0 && managed != 0,
			"the profiler has %+v", all)
		expect.True(t, all.copies >= enoughStacks && all.whole*100 >= all.copies*99,
			"%d of %d copies are complete", all.whole, all.copies)
	})
	t.Run("no helper", func(t *testing.T) {
		c := newClientRun(t, dll)
		c.engine = filepath.Join(c.dir, "missing.exe")
		saw := c.ended(t, c.start(t, program, "0"))
		const why = "missing.exe: there is no such file"
		expect.True(t, saw.died > 0 || saw.failed == -20 && saw.samples == 0 &&
			strings.Contains(saw.problem, why), "the profiler has %+v", saw)
	})
	t.Run("program killed", func(t *testing.T) {
		c := newClientRun(t, dll)
		alias := filepath.Join(c.dir, "SingleFile.exe")
		for _, link := range []string{alias, filepath.Join(c.dir, "demo.dll")} {
			must.Do(t, os.Symlink(need(t, "out", "windows", filepath.Base(link)), link))
		}
		c.start(t, alias, "9")
		expect.True(t, c.sampled(t, 9) != "", "no stacks")
		for _, pid := range helpersLike("^" + regexp.QuoteMeta(alias)) {
			must.Do(t, exec.Command("kill", "-KILL", pid).Run())
		}
		noHelper(t, c.helper())
	})
}

// A busy machine needs 10 s until the first stack of a helper. So some runs have few stacks.
const (
	enoughStacks  = 50
	maxClientRuns = 5
	maxDied       = 2
)

// helperKilled runs the program for tens of seconds. It kills the first helper, and adds what the second
// helper has walked to x, and what the profiler has received to all.
func helperKilled(t *testing.T, c *clientRun, program string, tens int, x *shapes, all *clientSaw) {
	t.Helper()
	cmd := c.start(t, program, fmt.Sprint(tens))
	helper := c.sampled(t, tens)
	if helper != "" {
		must.Do(t, exec.Command("kill", "-KILL", helper).Run())
	}
	saw := c.ended(t, cmd)
	all.died += saw.died
	expect.True(t, all.died <= maxDied, "the program died in %d runs", all.died)
	if helper == "" || saw.died > 0 {
		return
	}
	expect.True(t, saw.opened == 2 && saw.failed == -21,
		"opened %d times, and received %d", saw.opened, saw.failed)
	all.samples, all.copies, all.whole = all.samples+saw.samples, all.copies+saw.copies, all.whole+saw.whole
	for name, ns := range saw.cpu {
		all.cpu[name] += ns
	}
	samples, rd := readRaw(t, c.raw, "")
	x.outside(t, samples, rd)
}

// A copy has its caller's registers. A helper that dies while it has suspended a thread leaves no thread
// suspended. If it had only announced that, a suspension by the program stays.
func TestWindowsClientLife(t *testing.T) {
	capi, probe := filepath.Join(root, "capi"), filepath.Join(root, "sample", "probe", "src")
	exe, src := filepath.Join(tempdir.New(t), "life.exe"), filepath.Join(capi, "client", "src")
	argv := []string{mingw(t), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing",
		"-DWIN32_LEAN_AND_MEAN", "-I" + capi, "-I" + filepath.Join(capi, "client"),
		"-I" + filepath.Join(root, "profiler", "host"), "-o", exe,
		filepath.Join(capi, "client", "testdata", "life_windows.c"), filepath.Join(capi, "errors.c"),
		filepath.Join(probe, "copy.c"), filepath.Join(probe, "copy_windows.c")}
	for _, name := range []string{"client", "entry", "ids", "stream", "spawn_windows", "system_windows"} {
		argv = append(argv, filepath.Join(src, name+".c"))
	}
	run(t, time.Minute, nil, argv...).ok(t)
	res := run(t, 20*time.Second, nil, program(t, exe)...)
	got := strings.TrimSpace(res.stdout)
	expect.True(t, res.code == 0 && got == "good", "%d: %s", res.code, got)
}
