package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var tortureTime = flag.Duration("torture", 8*time.Second,
	"length of the torture of locks on Windows runtimes")

// tortured is a profiler for tests: the settings that select it.
type tortured struct{ env, flags []string }

const tortureEnv = "SEEDWALK_TORTURE"

// torture is the profiler that makes a mistake on purpose (profiler/torture_windows.c).
func torture(t *testing.T, mistake string) tortured {
	t.Helper()
	dll := need(t, "out", "windows", "seedwalk_profiler_torture.dll")
	return tortured{[]string{tortureEnv + "=" + mistake}, []string{"--profiler", dll}}
}

// Code that is only for the tests must not be in the product.
func TestWindowsProductHasNoMistakes(t *testing.T) {
	for _, c := range []struct {
		dll  string
		want bool
	}{{"seedwalk_profiler.dll", false}, {"seedwalk_profiler_torture.dll", true}} {
		expect.Equal(t, strings.Contains(readFile(t, need(t, "out", "windows", c.dll)), tortureEnv), c.want,
			"%s reads %s", c.dll, tortureEnv)
	}
}

// tortureKinds are the kinds of work of Torture.exe, by the method of each.
var tortureKinds = []string{"Torture.Heap", "Torture.Loader", "Torture.Environ", "Torture.Tables",
	"Torture.Collect", "Torture.Compile"}

// Threads that use the locks of heap, loader, environment, function tables and the CLR are sampled as fast as
// possible: the program ends as it does without a profiler.
func TestWindowsTorture(t *testing.T) {
	plain := run(t, time.Minute, []string{"SWHOST_LIMIT=40"},
		wine(t, "swhost.exe", need(t, core222), need(t, "out", "windows", "Torture.exe"), "3")...)
	must.True(t, plain.code == 7,
		"without a profiler: exit code %d, output %q\n%s", plain.code, plain.stdout, plain.stderr)
	want, total, seen := int(5*tortureTime.Seconds()), 0, map[string]int{}
	for run := 0; run < 3 && total < want; run++ { // one may not be enough on a loaded machine
		samples, rd, res := recordWindows(t, *tortureTime+time.Minute, nil, []string{"--rate", "1000"},
			core222, "Torture.exe", fmt.Sprint(tortureTime.Seconds()))
		t.Logf("%d samples in %v\n%s", len(samples), *tortureTime, res.stderr)
		must.True(t, res.code == plain.code && res.stdout == plain.stdout,
			"exit code %d, output %q; without a profiler %d, %q", res.code, res.stdout, plain.code,
			plain.stdout)
		total += len(samples)
		for _, s := range samples {
			for i := range s.Frames {
				seen[rd.Names()[s.Frames[i].Function]]++
			}
		}
	}
	expect.True(t, total >= want, "%d samples, want %d", total, want)
	for _, k := range tortureKinds {
		expect.True(t, seen[k] != 0, "%s was never sampled", k)
	}
}

// tortureDeadlock is the exit code of the torture profiler if a call in the window did not return.
const tortureDeadlock = 99

// Each lock that must not be taken in the window is taken there: the same threads then stop the sampler for
// ever.
func TestWindowsTortureDeadlocks(t *testing.T) {
	for _, c := range []struct{ mistake, kind string }{
		{"heap", "heap"}, {"loader", "loader"}, {"environment", "environment"},
		{"lookup", "tables"}, {"threads", "loader"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 30*time.Second, p.env, append(p.flags, "--rate", "1000"),
				core222, "Torture.exe", "20", c.kind)
			said := lineWith(res.stderr, "torture: deadlock")
			expect.Figures(t, said != "" && res.code == tortureDeadlock,
				"exit code %d after %v: %s; output %q\n%s", res.code, res.took.Round(100*time.Millisecond),
				said, res.stdout, res.stderr)
		})
	}
	t.Run("none", func(t *testing.T) {
		p := torture(t, "none")
		var res result
		// A loaded machine may not do all kinds of work in a short run.
		for _, seconds := range []string{"3", "12", "24"} {
			res = runWindows(t, time.Minute, p.env,
				append(p.flags, "--rate", "1000"), core222, "Torture.exe", seconds)
			if !strings.Contains(res.stdout, "came out wrong: 0\r\n") {
				break
			}
		}
		expect.True(t, res.code == 7, "exit code %d, output %q\n%s", res.code, res.stdout, res.stderr)
	})
}

// A process whose sampler was ended while it had a thread suspended, as ExitProcess of that thread does,
// continues and ends: the tool resumes the thread. If the tool does not learn of it, the process hangs.
func TestWindowsSamplerEnded(t *testing.T) {
	for _, c := range []struct {
		mistake string
		code    int
		limit   time.Duration
	}{{"die", 7, time.Minute}, {"unseen", hungCode, 15 * time.Second}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			var res result
			// on a loaded machine no suspension may be hit in a short run
			for _, seconds := range []string{"3", "6", "12", "24"} {
				res = runWindows(t, c.limit, p.env, append(p.flags, "--rate", "1000"),
					core222, "Torture.exe", seconds)
				if lineWith(res.stderr, "torture: the sampler ends") != "" {
					break
				}
			}
			said := lineWith(res.stderr, "its sampler was ended")
			expect.Figures(t, res.code == c.code && (said != "") == (c.code == 7),
				"exit code %d after %v, want %d; it says %q, which only goes with 7; output %q\n%s", res.code,
				res.took.Round(100*time.Millisecond), c.code, said, res.stdout, res.stderr)
		})
	}
}

// lineWith is the first line of text that contains part, "" if none.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
