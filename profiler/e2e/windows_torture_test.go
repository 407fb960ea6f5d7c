package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var tortureTime = flag.Duration("torture", 15*time.Second, "length of the torture of locks on Windows runtimes")

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
		if has := strings.Contains(readFile(t, need(t, "out", "windows", c.dll)), tortureEnv); has != c.want {
			t.Errorf("%s reads %s: %v", c.dll, tortureEnv, has)
		}
	}
}

// tortureKinds are the kinds of work of Torture.exe, by the method of each.
var tortureKinds = []string{"Torture.Heap", "Torture.Loader", "Torture.Environ", "Torture.Tables", "Torture.Collect", "Torture.Compile"}

// Threads that use the locks of heap, loader, environment, function tables and the CLR are sampled as fast as
// possible: the program ends as it does without a profiler.
func TestWindowsTorture(t *testing.T) {
	plain := run(t, time.Minute, []string{"SWHOST_LIMIT=40"}, wine(t, "swhost.exe", need(t, core222), need(t, "out", "windows", "Torture.exe"), "3")...)
	if plain.code != 7 {
		t.Fatalf("without a profiler: exit code %d, output %q\n%s", plain.code, plain.stdout, plain.stderr)
	}
	samples, rd, res := recordWindows(t, *tortureTime+time.Minute, nil, []string{"--rate", "1000"}, core222, "Torture.exe", fmt.Sprint(tortureTime.Seconds()))
	t.Logf("%d samples in %v\n%s", len(samples), *tortureTime, res.stderr)
	if res.code != plain.code || res.stdout != plain.stdout {
		t.Fatalf("exit code %d, output %q; without a profiler %d, %q", res.code, res.stdout, plain.code, plain.stdout)
	}
	if want := int(5 * tortureTime.Seconds()); len(samples) < want {
		t.Errorf("%d samples, want %d", len(samples), want)
	}
	seen := map[string]int{}
	for _, s := range samples {
		for i := range s.Frames {
			seen[rd.Names()[s.Frames[i].Function]]++
		}
	}
	for _, k := range tortureKinds {
		if seen[k] == 0 {
			t.Errorf("%s was never sampled", k)
		}
	}
}

// tortureDeadlock is the exit code of the torture profiler if a call in the window did not return.
const tortureDeadlock = 99

// Each lock that must not be taken in the window is taken there: the same threads then stop the sampler for
// ever.
func TestWindowsTortureDeadlocks(t *testing.T) {
	for _, c := range []struct{ mistake, kind string }{
		{"heap", "heap"}, {"loader", "loader"}, {"environment", "environment"}, {"lookup", "tables"}, {"threads", "loader"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 30*time.Second, p.env, append(p.flags, "--rate", "1000"), core222, "Torture.exe", "20", c.kind)
			said := lineWith(res.stderr, "torture: deadlock")
			t.Logf("exit code %d after %v: %s", res.code, res.took.Round(100*time.Millisecond), said)
			if said == "" || res.code != tortureDeadlock {
				t.Errorf("no deadlock: exit code %d, output %q\n%s", res.code, res.stdout, res.stderr)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		p := torture(t, "none")
		res := runWindows(t, 30*time.Second, p.env, append(p.flags, "--rate", "1000"), core222, "Torture.exe", "3")
		if res.code != 7 {
			t.Errorf("exit code %d, output %q\n%s", res.code, res.stdout, res.stderr)
		}
	})
}

// A process whose sampler was ended while it had a thread suspended, as ExitProcess of that thread does,
// continues and ends: the tool resumes the thread. If the tool does not learn of it, the process hangs.
func TestWindowsSamplerEnded(t *testing.T) {
	const hung = 124 // of swhost at its limit
	for _, c := range []struct {
		mistake string
		code    int
		limit   time.Duration
	}{{"die", 7, time.Minute}, {"unseen", hung, 15 * time.Second}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			var res result
			// on a loaded machine no suspension may be hit in a short run
			for _, seconds := range []string{"3", "6", "12", "24"} {
				res = runWindows(t, c.limit, p.env, append(p.flags, "--rate", "1000"), core222, "Torture.exe", seconds)
				if lineWith(res.stderr, "torture: the sampler ends") != "" {
					break
				}
			}
			said := lineWith(res.stderr, "its sampler was ended")
			t.Logf("exit code %d after %v: %s", res.code, res.took.Round(100*time.Millisecond), said)
			if res.code != c.code || (said != "") != (c.code == 7) {
				t.Errorf("want exit code %d, and told only then; output %q\n%s", c.code, res.stdout, res.stderr)
			}
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
