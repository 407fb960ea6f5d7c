package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// measurement is one run of a scenario: the truth, and the result of each judge.
type measurement struct {
	truth      exactTimes
	seen, perf exactProfile
}

// length is how long the scenario runs.
func (s setting) length() time.Duration { return *biasTime * time.Duration(s.scenario.slow) }

// pair lets a row of the permanent suite run beside another. Perf events count the thread's own time, so
// their samples do not depend on what else runs. The other clocks run alone.
func (s setting) pair(t *testing.T) {
	if *biasRuns == 1 && s.load == "idle" && !*biasBeside && outside.PerfEvents() == nil {
		t.Parallel()
	}
}

// program is the command line that runs the scenario for length.
func (s setting) program(t *testing.T, length time.Duration) []string {
	return on(t, s.runtime, "Exact", s.scenario.name, fmt.Sprint(length.Seconds()))
}

// prefix raises a command's priority, on a machine that others use too.
func (s setting) prefix() []string {
	if s.load == "rt" {
		return []string{"chrt", "-r", "5"}
	}
	return nil
}

// record runs the scenario under the tool, and under perf at the same time if asked.
func (s setting) record(t *testing.T, clock string, perf bool) (m measurement) {
	t.Helper()
	dir := tempdir.New(t)
	out, data := filepath.Join(dir, "out.json"), filepath.Join(dir, "perf.data")
	argv := append(s.prefix(), tool(t), "record", "--clock", clock, "--rate", s.rate, "--output", out, "--")
	argv = append(argv, s.program(t, s.length())...)
	var env []string
	if perf {
		env = []string{"DOTNET_PerfMapEnabled=3", "DOTNET_PerfMapJitDumpPath=" + dir}
		argv = append(perfArguments(data), argv...)
	}
	r := run(t, limitOfCommand, env, argv...)
	var err error
	m.truth, err = parseExact(r.stdout)
	must.True(t, err == nil && r.code == 0, "%d, %v\n%s", r.code, err, r.stderr)
	p := readJSONProfile(t, out)
	m.seen = p.times(m.truth.methods())
	if perf {
		m.perf = perfTimes(t, data, m.truth, takeMap(t, dir, assemblies(s.runtime, "Exact")))
	}
	return m
}

// recordOutside attaches to the scenario from outside. The recording covers a part of the run, so only shares
// can be compared.
func (s setting) recordOutside(t *testing.T) (m measurement) {
	t.Helper()
	target := start(t, append(s.prefix(), s.program(t, s.length()+2*time.Second)...)...)
	time.Sleep(time.Second)
	r := recordBy(t, s.prefix(),
		"--outside --pid "+target.id+" --rate "+s.rate+" --duration "+s.length().String())
	must.True(t, target.wait() == 0 && r.code == 0, "%v, the tool %d\n%s", target.err, r.code, r.stderr)
	var err error
	m.truth, err = parseExact(target.out.String())
	must.Do(t, err)
	m.seen = r.times(m.truth.methods())
	return m
}

// perfArguments run a command under perf. All processors are sampled if that is allowed: an event that
// threads inherit misses short-lived threads.
func perfArguments(data string) []string {
	argv := []string{"perf", "record", "-q", "-F", "997", "-e", "cpu-clock:u", "-o", data}
	if os.Geteuid() == 0 {
		argv = append(argv, "-a")
	}
	return append(argv, "--")
}

// hogs keep every processor busy until the test ends.
func hogs(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
		must.Do(t, c.Start())
		all = append(all, c)
	}
	t.Cleanup(func() {
		cancel()
		for _, c := range all {
			c.Wait()
		}
	})
}
