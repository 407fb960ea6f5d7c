package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/builder"
	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestSimGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
	}{
		{"sim", []string{"help", "sim"}},
		{"sim-heap", []string{"sim", "--scenario", "heap", "--preemptions", "1"}},
		{"sim-adjusted-seed", []string{"sim", "--scenario", "adjusted-seed", "--broken"}},
		{"sim-run", []string{"sim", "--scenario", "two-samplers", "--broken", "--run", "2", "--trace"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			out, errOut, code, _ := tool(t, c.args...)
			if code != 0 || errOut != "" {
				t.Errorf("exit code %d, stderr %q", code, errOut)
			}
			for i, line := range strings.Split(out, "\n") {
				if c.file == "sim" && len(line) > 100 {
					t.Errorf("line %d has %d columns", i+1, len(line))
				}
			}
			golden.Check(t, filepath.Join("testdata", c.file+".txt"), out)
		})
	}
}

// Every scenario is listed once, with its line.
func TestSimList(t *testing.T) {
	out, _, code, _ := tool(t, "sim")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, r := range rules.All() {
		if n := strings.Count(out, "  "+r.Name+" "); n != 1 || !strings.Contains(out, r.Line) {
			t.Errorf("%s stands %d times in\n%s", r.Name, n, out)
		}
	}
}

func TestSimWrongUse(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown scenario", []string{"--scenario", "hep"}, 2, `no scenario is called "hep"; seedwalk sim lists them`},
		{"name without its flag", []string{"heap"}, 2, "named with --scenario"},
		{"run of nothing", []string{"--run", "3"}, 2, "--run needs a --scenario"},
		{"run and explore", []string{"--scenario", "heap", "--run", "3", "--explore"}, 2, "choose one"},
		{"a run that is no number", []string{"--scenario", "heap", "--run", "x"}, 2, "--run x: not a whole number"},
		{"picture of all", []string{"--scenario", "all", "--svg", "x.svg"}, 2, "one scenario"},
		{"preemptions", []string{"--scenario", "heap", "--preemptions", "-3"}, 2, `nor "all"`},
		{"workers", []string{"--scenario", "heap", "--workers", "0"}, 2, "at least 1"},
		{"architecture", []string{"--scenario", "heap", "--arch", "mips"}, 2, "amd64 or arm64"},
		{"docs and more", []string{"--docs", "x", "--json"}, 2, "no other option"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errOut, code, dir := tool(t, append([]string{"sim"}, c.args...)...)
			if code != c.code || out != "" || !strings.Contains(errOut, c.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit code %d\nstdout %q\nstderr %q, want %q", code, out, errOut, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// The same number gives the same bytes; another number gives another run.
func TestSimSameNumberSameRun(t *testing.T) {
	run := func(n string) string {
		out, _, code, _ := tool(t, "sim", "--scenario", "gc-callback", "--kept", "--run", n, "--trace")
		if code != 0 {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		return out
	}
	one := run("18446744073709551615")
	if run("18446744073709551615") != one {
		t.Error("two runs of one number differ")
	}
	if run("1") == one {
		t.Error("another number gives the same run")
	}
}

type simDocument struct {
	Scenarios []struct {
		Name, Rule, Text, Source, Ends, CLR, Arch string
		Broken, Kept                              *struct {
			Interleavings, Deepest, Done, Deadlocks, Faults, Endless int
			Exhausted                                                bool
			Found                                                    *struct {
				Outcome string
				Steps   int
				Hash    string
				Choices []int
				Cycle   []string
				Graph   struct {
					Nodes []struct{ Name string }
					Edges []struct{ From, To, What string }
				}
				Trace []struct {
					Step         int
					Thread, What string
				}
			}
		}
	}
}

func simDecode(t *testing.T, args ...string) (d simDocument) {
	t.Helper()
	out, errOut, code, _ := tool(t, append([]string{"sim", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 || errOut != "" {
		t.Fatalf("%v, exit code %d, %s", err, code, errOut)
	}
	return d
}

func TestSimJSON(t *testing.T) {
	if d := simDecode(t); len(d.Scenarios) != len(rules.All()) || d.Scenarios[0].Broken != nil {
		t.Errorf("%+v", d)
	}
	d := simDecode(t, "--scenario", "heap", "--explore", "--trace", "--arch", "arm64")
	s := d.Scenarios[0]
	if len(d.Scenarios) != 1 || s.Name != "heap" || s.Rule == "" || s.Text == "" || s.Source == "" || s.Ends != "deadlock" || s.Arch != "arm64" {
		t.Errorf("%+v", s)
	}
	b := s.Broken
	if b.Deadlocks == 0 || !b.Exhausted || b.Interleavings != b.Done+b.Deadlocks+b.Faults+b.Endless {
		t.Errorf("%+v", b)
	}
	f := b.Found
	if f.Outcome != "deadlock" || len(f.Cycle) != 3 || len(f.Graph.Nodes) != 3 || len(f.Graph.Edges) != 3 || len(f.Hash) != 16 || len(f.Trace) < f.Steps || f.Trace[0].Thread == "" {
		t.Errorf("%+v", f)
	}
	if k := s.Kept; k.Found != nil || k.Done != k.Interleavings || k.Done < 1000 {
		t.Errorf("%+v", k)
	}
	r := must.Get(rules.Find("heap"))(t)
	r.Setup.Arch = builder.SimArchs["arm64"]
	if res := r.Run(true, sched.Replay(f.Choices)); res.Outcome != sched.Deadlock || res.Steps != f.Steps {
		t.Errorf("the choices in the JSON do not replay: %v", res.Outcome)
	}
}

func TestSimPictures(t *testing.T) {
	out, errOut, code, dir := tool(t, "sim", "--scenario", "two-samplers", "--broken", "--svg", "a.svg", "--dot", "-")
	if code != 0 || errOut != "" || !strings.Contains(out, "digraph deadlock") {
		t.Errorf("exit code %d, %s\n%s", code, errOut, out)
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "a.svg")); err != nil || !strings.Contains(string(svg), "suspended by") {
		t.Errorf("%v\n%s", err, svg)
	}
	out, _, code, _ = tool(t, "sim", "--scenario", "alternate-stack", "--broken", "--svg", "-")
	if code != 0 || !strings.Contains(out, "fault after") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	_, errOut, code, _ = tool(t, "sim", "--scenario", "alternate-stack", "--broken", "--dot", "-")
	if code != 1 || !strings.Contains(errOut, "--svg draws its timeline") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	_, errOut, code, _ = tool(t, "sim", "--scenario", "two-samplers", "--broken", "--svg", "none/a.svg")
	if code != 1 || !strings.Contains(errOut, "choose a file you may write") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
}

// A scenario with an unexpected result ends in exit code 1: here the broken side has no chance to fail.
func TestSimExitCode(t *testing.T) {
	out, _, code, _ := tool(t, "sim", "--scenario", "heap", "--explore", "--preemptions", "0")
	if code != 1 || !strings.Contains(out, "NOT AS IT SHOULD BE: heap, broken: no deadlock") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
