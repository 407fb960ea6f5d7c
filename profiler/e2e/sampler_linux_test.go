package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var samplerSamples = flag.Int("sampler", 600,
	"how many samples TestSampler judges of each build on each runtime")

// vendorLock is held while something is built in libraries.
var vendorLock sync.Mutex

// built returns the path of a file in libraries, which the command makes once for all tests.
func built(t *testing.T, name string, command func(path string) []string) string {
	t.Helper()
	vendorLock.Lock()
	defer vendorLock.Unlock()
	path := filepath.Join(libraries, name)
	if _, err := os.Stat(path); err != nil {
		run(t, 10*time.Minute, nil, command(path)...).ok(t)
	}
	return path
}

// cLibrary builds the C library, or the client library, and returns its path.
func cLibrary(t *testing.T, kind string) string {
	t.Helper()
	folder, mode := "capi", map[string]string{".so": "shared", ".a": "archive"}[filepath.Ext(kind)]
	if strings.Contains(kind, "client") {
		folder = "capi/client"
	}
	return built(t, kind, func(path string) []string {
		return []string{filepath.Join(root, folder, "build.sh"), mode, path}
	})
}

// vendor builds a profiler of one C++ or C file with the C library, or with the client library, as a vendor
// would.
func vendor(t *testing.T, source, kind string) string {
	t.Helper()
	needs.Command(t, "g++")
	library, compiler := cLibrary(t, kind), []string{"g++", "-std=c++17"}
	if filepath.Ext(source) == ".c" {
		compiler = []string{"gcc", "-std=gnu11"}
	}
	return built(t, "lib"+filepath.Base(source)+kind+".so", func(path string) []string {
		return append(compiler, "-O2", "-Wall", "-Wextra", "-Werror",
			"-I"+filepath.Join(root, "capi"), "-I"+filepath.Join(root, "capi", "client"),
			"-shared", "-fPIC", "-o", path,
			filepath.Join(root, source), library, "-lpthread", "-Wl,-rpath,"+libraries)
	})
}

// The sample profilers, linked with either library, on either runtime: their stacks agree with the threads'
// own records, and the program works as without them, even with short-lived threads, hardware exceptions, and
// collections.
func TestSampler(t *testing.T) {
	dir := tempdir.New(t)
	for _, c := range combinations([]string{"9.0.5", "10.0.9"}, "own_protocol_linux.c", "libseedwalk.so") {
		t.Run(c.name(), func(t *testing.T) {
			source := filepath.Join("capi", "testdata", "own_named.c")
			if c.example == smallest {
				source = filepath.Join("capi", "examples", c.example)
			}
			library := vendor(t, source, c.kind)
			samplerTruth(t, c, dir, library, on(t, c.runtime, "Truth"))
			if out := storm(t, c, library); c.example == smallest {
				waited(t, out)
			}
		})
	}
}

// storm runs Storm.cs under a sample profiler, which must not affect it, and returns the profiler's file.
func storm(t *testing.T, c combination, library string) (out string) {
	t.Helper()
	dir := tempdir.New(t)
	file, out := filepath.Join(dir, "raw"), filepath.Join(dir, "storm")
	res := run(t, time.Minute,
		profiled(library, "SEEDWALK_RAW="+file, "SAMPLER_OUT="+out), on(t, c.runtime, "Storm")...)
	samples, _ := readRaw(t, file, res.stderr)
	stormed(t, c, samples, res)
	expect.Equal(t, res.stdout+res.stderr, "", "the program's output")
	return out
}

func samplerTruth(t *testing.T, which combination, dir, library string, app []string) {
	c := newChecker(t)
	c.want = *samplerSamples
	out := filepath.Join(dir, "out")
	vendorTruth(t, c, dir, profiled(library, "SAMPLER_OUT="+out, "OWN_PROTOCOL_OUT="+out,
		"OWN_PROTOCOL_NAMES="+out+".names"), app,
		func(judged int) { vendorSaw(t, out, judged) })
	sum := c.sum()
	which.line(sum.samples, sum.complete, sum.checked, sum.wrong, sum.gaps, 0)
}

// vendorTruth runs a program of known stacks under a vendor's profiler until there are as many samples as c
// wants, and compares them. After each run it calls ended with the number of samples compared.
func vendorTruth(t *testing.T, c *checker, dir string, env, app []string, ended func(judged int)) {
	t.Helper()
	raw := filepath.Join(dir, "raw")
	for runs := 0; c.total < c.want && runs < max(maxRuns, c.want/1000); runs++ {
		res := run(t, 5*time.Minute, append(env, "SEEDWALK_RAW="+raw), append(app, samplerLength("8"))...)
		truthDone(t, res)
		samples, rd := readRaw(t, raw, res.stderr)
		c.methods = rd.Names()
		if given, err := os.ReadFile(filepath.Join(dir, "out.names")); len(c.methods) == 0 && err == nil {
			c.methods = methodsWritten(string(given))
		}
		c.compare(t, samples)
		ended(len(samples))
	}
	sum := c.verdict(t)
	asked := sum.samples - sum.gaps[merge.GapNoAnswer]
	expect.True(t, sum.complete*1000 >= asked*leastWhole, "%d of %d stacks are complete", sum.complete, asked)
}

// truthDone fails a test if its program was affected by sampling.
func truthDone(t *testing.T, res result) {
	t.Helper()
	must.True(t, res.code == 0 && res.stdout == "TRUTH DONE\n" && res.stderr == "",
		"the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
}

// vendorSaw compares the vendor's counts with the samples compared. The end of the program may have
// interrupted a last round.
func vendorSaw(t *testing.T, out string, judged int) {
	t.Helper()
	b := readFile(t, out)
	var samples, complete, frames, unmanaged int
	fmt.Sscanf(b, "samples %d complete %d frames %d unmanaged %d", &samples, &complete, &frames, &unmanaged)
	expect.True(t, samples <= judged && samples >= judged-32 && unmanaged != 0 && frames > unmanaged,
		"the vendor was given %d stacks with %d frames, %d of them unmanaged; %d were judged", samples,
		frames, unmanaged, judged)
}

// waited checks a storm's stacks: one thread of eight waits for the suspension to end, and is hardly ever
// stopped by the runtime's signal, by which it could be recognised.
func waited(t *testing.T, out string) {
	t.Helper()
	b := readFile(t, out)
	var samples, complete, frames, unmanaged, waiting int
	n, _ := fmt.Sscanf(b, "samples %d complete %d frames %d unmanaged %d\nwaiting %d", &samples, &complete,
		&frames, &unmanaged, &waiting)
	must.True(t, n == 5, "the vendor says %q", b)
	fmt.Printf("%s: %d of %d stacks wait for the suspension to end\n", t.Name(), waiting, samples)
	const enough = 1000 // with few samples, none may be
	if samples >= enough && waiting == 0 {
		t.Error("none of them is told")
	}
}

// leastEnded is the least number of samples of a run. The runtime grants few suspensions while its finalizer
// owns the lock of the threads.
const leastEnded = 10

// examples are the sample profilers, and the library of each.
var examples = map[string]string{smallest: "libseedwalk.so",
	"own_protocol_linux.c": "libseedwalk.so", "client.c": "libseedwalk_client.a"}

// The sample profilers neither hang a program nor stop sampling if ThreadDestroyed comes late, as it does for
// native threads while finalizers are slow.
func TestSamplerEndedThreads(t *testing.T) {
	dir := tempdir.New(t)
	for e, example := range slices.Sorted(maps.Keys(examples)) {
		library := vendor(t, filepath.Join("capi", "examples", example), examples[example])
		for _, runtime := range both {
			if !*samplerAll && !turn(e, runtime) {
				continue
			}
			t.Run(runtime+"/"+example, func(t *testing.T) {
				out := filepath.Join(dir, runtime+example)
				res := run(t, 3*time.Minute, clientEnv(t, library, out, "OWN_PROTOCOL_OUT="+out),
					on(t, runtime, "Ended", samplerLength("6"))...)
				must.True(t, res.code == 42 && res.stdout+res.stderr == "",
					"the program ended with %d and said %q %q", res.code, res.stdout, res.stderr)
				var samples int
				first, _, _ := strings.Cut(readFile(t, out), "\n")
				fmt.Sscanf(first, "samples %d", &samples)
				t.Log(first)
				expect.True(t, samples >= leastEnded, "%d samples: sampling has stopped", samples)
			})
		}
	}
}

// The checking proxy finds no fault in the sample profilers.
func TestProxyOfSamplers(t *testing.T) {
	dir := tempdir.New(t)
	src, check := filepath.Join(root, "capi", "checked", "src"), filepath.Join(dir, "libseedwalkcheck.so")
	argv := []string{"gcc", "-O2", "-shared", "-fPIC", "-o", check, filepath.Join(src, "loader.c"),
		filepath.Join(src, "proxy.c"), filepath.Join(src, "rules.c"),
		filepath.Join(src, "threads.c"), "-ldl", "-lpthread"}
	run(t, time.Minute, nil, argv...).ok(t)
	for example, kind := range examples {
		t.Run(example, func(t *testing.T) {
			library := vendor(t, filepath.Join("capi", "examples", example), kind)
			out, broken := filepath.Join(dir, example), filepath.Join(dir, example+".broken")
			res := run(t, 2*time.Minute,
				clientEnv(t, check, out, "OWN_PROTOCOL_OUT="+out, "SEEDWALK_CHECKED_LIBRARY="+library,
					"SEEDWALK_CHECKED_OUT="+broken), app(t, "Ended", samplerLength("4"))...)
			if b, err := os.ReadFile(broken); res.code != 42 || err != nil || len(b) > 0 {
				t.Errorf("the program ended with %d; the proxy: %v\n%s", res.code, err, b)
			}
		})
	}
}
