package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// clientWait is how long a program runs before the client library is loaded into it.
var clientWait = flag.Duration("client-wait", 2*time.Second,
	"how long a program runs before TestClientCycles and TestClientAttach load the client library")

// clientRuns is how often TestClientOrders starts a program in each order.
var clientRuns = flag.Int("client-runs", 1, "how many programs TestClientOrders starts in each order")

// clientEnv is profiled, for the client library; its helper is the tool.
func clientEnv(t *testing.T, library, out string, more ...string) []string {
	return profiled(library, append([]string{"SEEDWALK_ENGINE=" + tool(t), "SAMPLER_OUT=" + out}, more...)...)
}

// clientSaw is what the client library's sample profiler wrote.
type clientSaw struct {
	samples, complete, frames, unmanaged, copies, whole, opened, failed int

	died    int // runs that ended for Wine's own reasons
	problem string
	cpu     map[string]float64 // ns by method, inclusive
}

// scan reads the numbers of a file that the profiler may be writing.
func (s *clientSaw) scan(text string) error {
	const format = "samples %d complete %d frames %d unmanaged %d\ncopies %d complete %d\nopened %d\nerror %d"
	_, err := fmt.Sscanf(text, format, &s.samples, &s.complete, &s.frames, &s.unmanaged, &s.copies, &s.whole,
		&s.opened, &s.failed)
	return err
}

func readClient(t *testing.T, path string) (s clientSaw) {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Equal(t, err, nil, "the profiler wrote nothing")
	text, tops, _ := strings.Cut(strings.TrimSpace(string(b)), "\ntop ")
	err = s.scan(text)
	must.Equal(t, err, nil, "%q", text)
	s.problem = text[strings.LastIndexByte(text, '\n')+1:]
	s.cpu = map[string]float64{}
	for line := range strings.Lines("top " + tops) {
		var ns float64
		var name string
		fmt.Sscanf(line, "top %f %s", &ns, &name)
		s.cpu[name[strings.LastIndexByte(name, '.')+1:]] += ns
	}
	return s
}

// helpersLike are the processes whose command line matches.
func helpersLike(pattern string) []string {
	out, _ := exec.Command("pgrep", "-f", pattern).Output()
	return strings.Fields(string(out))
}

// noHelper fails if a helper of the process outlives it.
func noHelper(t *testing.T, pattern string) {
	t.Helper()
	for begin := time.Now(); len(helpersLike(pattern)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("helpers are left: %v", helpersLike(pattern))
		}
	}
}

// A profiler that is linked with the client library has stacks that agree with the threads' own records, and
// the program works as without it.
func TestClient(t *testing.T) {
	dir := tempdir.New(t)
	all := []combination{
		{needs.Net9, smallest, "libseedwalk_client.so"}, {needs.Net10, "client.c", "libseedwalk_client.a"},
		{needs.Net9Musl, "client.c", "libseedwalk_client.a"},
	}
	if *samplerAll {
		all = append(all, combination{needs.Net10, smallest, "libseedwalk_client.a"},
			combination{needs.Net9, "client.c", "libseedwalk_client.so"})
	}
	for _, c := range all {
		t.Run(c.name(), func(t *testing.T) {
			t.Setenv("SEEDWALK_ENGINE", tool(t))
			library := vendor(t, filepath.Join("capi", "examples", c.example), c.kind)
			clientTruth(t, c, dir, library)
			if c.runtime != needs.Net9Musl { // there is no Storm
				storm(t, c, library)
			}
		})
	}
}

// least is the percentage of stacks that a profiler must receive of a program of a few seconds. The others
// are in transit when the program ends: on a busy machine about half of them.
const least = 30

// clientTruth compares the stacks that the helper walked. The profiler has as many, plus those of idle
// threads, which are sent again without a walk.
func clientTruth(t *testing.T, which combination, dir, library string) {
	c := newChecker(t)
	c.want = *samplerSamples
	out := filepath.Join(dir, "out")
	vendorTruth(t, c, dir, profiled(library, "SAMPLER_OUT="+out),
		on(t, which.runtime, "Truth"), func(judged int) {
			var samples, complete int
			b, err := os.ReadFile(out)
			fmt.Sscanf(string(b), "samples %d complete %d", &samples, &complete)
			must.True(t, err == nil && samples*100 >= judged*least && complete*100 >= samples*99,
				"%v: the profiler has %d stacks, %d complete; %d were judged", err, samples, complete, judged)
			os.Remove(out)
		})
	sum := c.sum()
	which.line(sum.samples, sum.complete, sum.checked, sum.wrong, sum.gaps, 0)
}

// Each method of a program has its share of the CPU time, with musl too: the samples are not biased to
// safe points.
func TestClientBias(t *testing.T) {
	library := vendor(t, filepath.Join("capi", "examples", "client.c"), "libseedwalk_client.a")
	all := settings(t)
	musl := all[len(all)-1]
	musl.runtime = needs.Net9Musl
	if !*samplerAll {
		all = slices.DeleteFunc(all, func(s setting) bool { return !s.client() })
	}
	for _, s := range append(all, musl) {
		t.Run(s.String(), func(t *testing.T) {
			s.pair(t)
			out, row := filepath.Join(tempdir.New(t), "out"), biasRow{setting: s}
			r := run(t, limitOfCommand,
				clientEnv(t, library, out, "MINE_HERTZ="+s.rate), s.program(t, s.length())...)
			truth, err := parseExact(r.stdout)
			must.True(t, err == nil && r.code == 0, "%d, %v\n%s", r.code, err, r.stderr)
			saw, m := readClient(t, out), measurement{truth: truth}
			m.seen.method = map[string]float64{}
			for _, name := range truth.methods() {
				m.seen.method[name] = saw.cpu[name]
				m.seen.samples += saw.cpu[name] / 1e6 // a millisecond each
			}
			row.runs = append(row.runs, m)
			points, errors := row.limits()
			sum := 0.0
			for _, name := range truth.methods() {
				sum += saw.cpu[name]
			}
			t.Logf("cpu_ns of these methods: %.3f s of %.3f s; %d stacks; %s", sum/1e9, truth.process/1e9,
				saw.samples, saw.problem)
			for _, name := range truth.methods() {
				v := judgeShare(row.runs, name, points, errors)
				expect.Figures(t, v.ok(), "%-12s truth %5.1f %%, client %5.1f %%, %.0f samples", name,
					100*v.truth, 100*v.mean, v.samples)
			}
		})
	}
}

// cycles builds the profiler that opens and closes the client library.
func cycles(t *testing.T, out string, more ...string) string {
	t.Helper()
	capi := filepath.Join(root, "capi")
	argv := []string{"gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
		"-I" + capi, "-o", out, filepath.Join(capi, "testdata", "client_cycles.c")}
	run(t, time.Minute, nil, append(argv, append(more, "-ldl", "-lpthread")...)...).ok(t)
	return out
}

// cycled checks what the profiler wrote after n cycles. In each cycle, a few stacks from before the runtime's
// tables are verified may be incomplete.
func cycled(t *testing.T, path string, n int) {
	t.Helper()
	var good, all, stacks, whole int
	text := readFile(t, path)
	fmt.Sscanf(text, "good %d of %d stacks %d whole %d", &good, &all, &stacks, &whole)
	t.Log(strings.TrimSpace(text))
	expect.True(t, good == n && whole >= stacks-4*n-stacks/100, "want %d good cycles", n)
	os.Remove(path)
}

// The client library is loaded late, opened, closed, and unloaded, repeatedly.
func TestClientCycles(t *testing.T) {
	dir := tempdir.New(t)
	library := cLibrary(t, "libseedwalk_client.so")
	profiler := cycles(t, filepath.Join(dir, "libcycles.so"), "-Wl,-z,nodelete")
	eachRuntime(t, func(t *testing.T, runtime string) {
		out := filepath.Join(dir, runtime)
		env := profiled(profiler, "SEEDWALK_ENGINE="+tool(t), "CLIENT_LIBRARY="+library, "CYCLES_OUT="+out,
			fmt.Sprintf("CYCLES=%d", *attachments), fmt.Sprint("CYCLES_WAIT=", clientWait.Milliseconds()))
		p := startIn(t, env, on(t, runtime, "Truth", endless)...)
		until(t, "the cycles have ended", func() bool { b, _ := os.ReadFile(out); return len(b) > 0 })
		p.truthDone()
		expect.Equal(t, p.errs.String(), "", "the program's errors")
		cycled(t, out, *attachments)
	})
}

// A profiler with the client library inside is attached, detaches itself, and is attached again. The runtime
// unloads it each time.
func TestClientAttach(t *testing.T) {
	dir := tempdir.New(t)
	profiler := cycles(t, filepath.Join(dir, "libattached.so"), "-Wl,--whole-archive",
		cLibrary(t, "libseedwalk_client.a"), "-Wl,--no-whole-archive")
	eachRuntime(t, func(t *testing.T, runtime string) {
		out := filepath.Join(dir, runtime)
		env := []string{"SEEDWALK_ENGINE=" + tool(t), "CLIENT_LIBRARY=" + profiler,
			"CYCLES_OUT=" + out, "CYCLES=1"}
		p := startIn(t, env, append(on(t, runtime, "Truth"), fmt.Sprint(15+*attachments*6))...)
		time.Sleep(*clientWait)
		for range *attachments {
			until(t, "the profiler is attached", func() bool {
				c, err := diagnostics.Process(p.pid)
				return err == nil && c.Attach(diagnostics.Profiler{Path: profiler}) == nil
			})
			until(t, "it has sampled", func() bool { b, _ := os.ReadFile(out); return len(b) > 0 })
			cycled(t, out, 1)
		}
		// The runtime still unloads the profiler. It may crash if the program ends meanwhile.
		expect.True(t, p.wait() == 0 && p.out.String() == "TRUTH DONE\n" && p.errs.String() == "",
			"%v: the program said %q %q", p.err, p.out.String(), p.errs.String())
	})
}

// Profilers of the client library are loaded first and second, together with another vendor's, during a
// recording of ours, two at once, and attached. The runtimes take turns, unless there are several runs.
func TestClientOrders(t *testing.T) {
	dir := tempdir.New(t)
	library := vendor(t, filepath.Join("capi", "examples", "client.c"), "libseedwalk_client.a")
	twin := filepath.Join(dir, "twin.so")
	copied(t, twin, library)
	second := need(t, "out", "samples", "libsecond.so")
	beside := func(list string) []string {
		return []string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=1", "CORECLR_NOTIFICATION_PROFILERS=" + list}
	}
	is := func(id, path string) []string {
		return []string{"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER=" + id,
			"CORECLR_PROFILER_PATH=" + path}
	}
	const ours = "{11111111-2222-3333-4444-555555555555}"
	const theirs = "{11111111-2222-3333-4444-555555555556}"
	for i, c := range []order{
		{"main", false, is(ours, library)},
		{"main, another beside", false, append(is(ours, library), beside(second+"="+secondID+";")...)},
		{"beside, another main", false, append(is(secondID, second), beside(library+"="+ours+";")...)},
		{"beside alone", false, beside(library + "=" + ours + ";")},
		{"beside after another beside", false,
			beside(second + "=" + secondID + ";" + library + "=" + ours + ";")},
		{"main in a recording", true, is(ours, library)},
		{"two clients", false, append(is(ours, library), beside(twin+"="+theirs+";")...)},
	} {
		for run := range *clientRuns * len(both) {
			if runtime := both[run%len(both)]; *clientRuns > 1 || turn(i, runtime) {
				t.Run(fmt.Sprint(c.name, "/", runtime, "/", run), func(t *testing.T) {
					t.Parallel()
					c.run(t, runtime)
				})
			}
		}
	}
}

// order is a combination of profilers, and how the runtime loads each of them.
type order struct {
	name     string
	recorded bool
	env      []string
}

// run runs a program with the profilers. The program must work as without them. The client library must have
// sampled it.
func (c *order) run(t *testing.T, runtime string) {
	out := filepath.Join(tempdir.New(t), "out")
	env := append(slices.Clone(c.env), "SEEDWALK_ENGINE="+tool(t), "SAMPLER_OUT="+out,
		"SECOND_COUNTS="+out+"-counts")
	if strings.HasPrefix(c.name, "beside") {
		env = append(env, "MINE_BESIDE=1")
	}
	argv := on(t, runtime, "Truth", "6")
	if c.recorded { // for longer: two tools sample the program
		argv = append([]string{tool(t), "record", "-o", out + ".json", "--"},
			on(t, runtime, "Truth", "12")...)
	}
	res := run(t, 2*time.Minute, env, argv...)
	if res.code != 0 || !strings.HasPrefix(res.stdout, "TRUTH DONE\n") ||
		!c.recorded && res.stderr != "" {
		t.Errorf("the program ended with %d and said %q %q", res.code, res.stdout, res.stderr)
	}
	saw := readClient(t, out)
	expect.Figures(t, saw.samples >= 50 && saw.complete*100 >= saw.samples*99 && saw.opened == 1,
		"%d samples, %d complete; %s", saw.samples, saw.complete, saw.problem)
}
