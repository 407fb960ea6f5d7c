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
	"github.com/seedwalk/seedwalk/testkit/expect"
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
			expect.True(t, code == 0 && errOut == "", "exit code %d, stderr %q", code, errOut)
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
	expect.Equal(t, code, 0, "exit code")
	for _, r := range rules.All() {
		n := strings.Count(out, "  "+r.Name+" ")
		expect.True(t, n == 1 && strings.Contains(out, r.Line), "%s stands %d times in\n%s", r.Name, n, out)
	}
}

func TestSimWrongUse(t *testing.T) {
	refused(t, []wrongUse{
		{"unknown scenario", []string{"sim", "--scenario", "hep"}, 2,
			`no scenario is called "hep"; seedwalk sim lists them`},
		{"name without its flag", []string{"sim", "heap"}, 2, "name a scenario with --scenario"},
		{"run of nothing", []string{"sim", "--run", "3"}, 2, "--run needs a --scenario"},
		{"run and explore", []string{"sim", "--scenario", "heap", "--run", "3", "--explore"}, 2,
			"choose one"},
		{"a run that is no number", []string{"sim", "--scenario", "heap", "--run", "x"}, 2,
			"--run x: not a whole number"},
		{"picture of all", []string{"sim", "--scenario", "all", "--svg", "x.svg"}, 2, "one scenario"},
		{"preemptions", []string{"sim", "--scenario", "heap", "--preemptions", "-3"}, 2, `nor "all"`},
		{"workers", []string{"sim", "--scenario", "heap", "--workers", "0"}, 2, "at least 1"},
		{"architecture", []string{"sim", "--scenario", "heap", "--arch", "mips"}, 2, "amd64 or arm64"},
		{"docs and more", []string{"sim", "--docs", "x", "--json"}, 2, "cannot be combined"},
	})
}

// The same number gives the same bytes; another number gives another run.
func TestSimSameNumberSameRun(t *testing.T) {
	run := func(n string) string {
		out, _, code, _ := tool(t, "sim", "--scenario", "gc-callback", "--kept", "--run", n, "--trace")
		expect.True(t, code == 0, "exit code %d:\n%s", code, out)
		return out
	}
	one := run("18446744073709551615")
	expect.Equal(t, run("18446744073709551615"), one, "two runs of one number differ")
	expect.True(t, run("1") != one, "another number gives the same run")
}

type simDocument struct {
	Scenarios []struct {
		Name, Rule, Text, Source, Ends, CLR, Arch string
		Broken, Kept                              *struct {
			Interleavings, Orders, Deepest, Done, Deadlocks, Faults, Endless int
			Exhausted                                                        bool
			Found                                                            *struct {
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
	err := json.Unmarshal([]byte(out), &d)
	must.True(t, err == nil && code == 0 && errOut == "", "%v, exit code %d, %s", err, code, errOut)
	return d
}

func TestSimJSON(t *testing.T) {
	if d := simDecode(t); len(d.Scenarios) != len(rules.All()) || d.Scenarios[0].Broken != nil {
		t.Errorf("%+v", d)
	}
	d := simDecode(t, "--scenario", "heap", "--explore", "--trace", "--arch", "arm64")
	s := d.Scenarios[0]
	expect.True(t, len(d.Scenarios) == 1 && s.Name == "heap" && s.Rule != "" && s.Text != "" &&
		s.Source != "" && s.Ends == "deadlock" && s.Arch == "arm64", "%+v", s)
	b := s.Broken
	expect.True(t, b.Deadlocks != 0 && b.Exhausted &&
		b.Interleavings == b.Done+b.Deadlocks+b.Faults+b.Endless, "%+v", b)
	f := b.Found
	expect.True(t, f.Outcome == "deadlock" && len(f.Cycle) == 3 && len(f.Graph.Nodes) == 3 &&
		len(f.Graph.Edges) == 3 && len(f.Hash) == 16 && len(f.Trace) >= f.Steps && f.Trace[0].Thread != "",
		"%+v", f)
	k := s.Kept
	expect.True(t, k.Found == nil && k.Done == k.Interleavings && k.Orders >= 1000, "%+v", k)
	r := must.Get(rules.Find("heap"))(t)
	r.Setup.Arch = builder.SimArchs["arm64"]
	if res := r.Run(true, sched.Replay(f.Choices)); res.Outcome != sched.Deadlock || res.Steps != f.Steps {
		t.Errorf("the choices in the JSON do not replay: %v", res.Outcome)
	}
}

func TestSimPictures(t *testing.T) {
	out, errOut, code, dir := tool(t, "sim", "--scenario", "two-samplers", "--broken",
		"--svg", "a.svg", "--dot", "-")
	expect.True(t, code == 0 && errOut == "" && strings.Contains(out, "digraph deadlock"),
		"exit code %d, %s\n%s", code, errOut, out)
	svg, err := os.ReadFile(filepath.Join(dir, "a.svg"))
	expect.True(t, err == nil && strings.Contains(string(svg), "suspended by"), "%v\n%s", err, svg)
	out, _, code, _ = tool(t, "sim", "--scenario", "alternate-stack", "--broken", "--svg", "-")
	expect.True(t, code == 0 && strings.Contains(out, "fault after"), "exit code %d\n%s", code, out)
	_, errOut, code, _ = tool(t, "sim", "--scenario", "alternate-stack", "--broken", "--dot", "-")
	expect.True(t, code == 1 && strings.Contains(errOut, "--svg draws its timeline"),
		"exit code %d, %s", code, errOut)
	_, errOut, code, _ = tool(t, "sim", "--scenario", "two-samplers", "--broken", "--svg", "none/a.svg")
	expect.True(t, code == 1 && strings.Contains(errOut, "choose a file you may write"),
		"exit code %d, %s", code, errOut)
}

// TestSimExitCode: a scenario with an unexpected result ends with exit code 1. Here the broken side cannot
// fail, because preemptions are not allowed.
func TestSimExitCode(t *testing.T) {
	out, _, code, _ := tool(t, "sim", "--scenario", "heap", "--explore", "--preemptions", "0")
	expect.True(t, code == 1 && strings.Contains(out, "NOT AS IT SHOULD BE: heap, broken: no deadlock"),
		"exit code %d\n%s", code, out)
}

func TestRulesGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
	}{
		{"rules-help", []string{"help", "rules"}},
		{"rules-method", []string{"rules", "getclassfromtokenandtypeargs"}},
		{"rules-callback", []string{"rules", "ThreadAssignedToOSThread"}},
		{"rules-hresult", []string{"rules", "0x80131360"}},
		{"rules-bit", []string{"rules", "COR_PRF_MONITOR_GC"}},
		{"rules-rule", []string{"rules", "thread-destroyed"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			out, errOut, code, _ := tool(t, c.args...)
			expect.True(t, code == 0 && errOut == "", "exit code %d, stderr %q", code, errOut)
			golden.Check(t, filepath.Join("testdata", c.file+".txt"), out)
		})
	}
}

func TestRulesWrongUse(t *testing.T) {
	refused(t, []wrongUse{
		{"a letter wrong", []string{"rules", "GetTreadInfo"}, 1, "did you mean GetThreadInfo?"},
		{"a rule nearly", []string{"rules", "tread-destroyed"}, 1, "did you mean thread-destroyed?"},
		{"an unknown HRESULT", []string{"rules", "80139999"}, 1, `no rule named "80139999"`},
		{"nothing near", []string{"rules", "xyzzyxyzzyxyzzyxyzzy"}, 1,
			`no rule named "xyzzyxyzzyxyzzyxyzzy"; seedwalk rules lists`},
		{"a long name", []string{"rules", strings.Repeat("x", 100000)}, 1, "no rule named"},
		{"two names", []string{"rules", "a", "b"}, 2, "one name at a time, not 2"},
		{"unknown flag", []string{"rules", "--x"}, 2, "seedwalk rules --help"},
	})
}

func TestRulesJSON(t *testing.T) {
	out, _, code, _ := tool(t, "rules", "--json", "EnumModules")
	var c builder.Contract
	err := json.Unmarshal([]byte(out), &c)
	must.True(t, err == nil && code == 0, "exit code %d: %v", code, err)
	expect.True(t, c.Kind == "info" && c.Info.Slot == 66 && len(c.Places) == 8 &&
		c.Places[4].Net9 == "refused (80131363)", "%+v", c)
	out, _, code, _ = tool(t, "rules", "--json")
	var l builder.AllNames
	err = json.Unmarshal([]byte(out), &l)
	expect.True(t, err == nil && code == 0 && len(l.Info) == 112 && len(l.Callbacks) == 95,
		"exit code %d, %v, %d and %d methods", code, err, len(l.Info), len(l.Callbacks))
}

// Vendors may use other words: each search finds an answer that names the right rule.
func TestRulesOtherWords(t *testing.T) {
	for word, want := range map[string]string{"ICorProfilerInfo10": "97 SuspendRuntime",
		"icorprofilercallback2": "73 GarbageCollectionStarted", "ICorProfilerInfo::ForceGC": "slot 28",
		"36": "ICorProfilerInfo2::DoStackSnapshot", "slot 97": "SuspendRuntime",
		"-2146233501": "UNSUPPORTED_CALL_SEQUENCE", "2148733795": "UNSUPPORTED_CALL_SEQUENCE",
		"8013135e":       "INVALID_TGT_THREAD",
		"FunctionEnter3": "cooperative", "ELT": "cooperative",
		"COR_PRF_SNAPSHOT_X86_OPTIMIZED": "E_INVALIDARG", "hang": "destroyed-waits",
		"Deadlock":        "destroyed-waits",
		"destroyed-waits": "deadlock", "GetObjectGeneration": "kills the process"} {
		out, errOut, code, _ := tool(t, "rules", word)
		expect.True(t, code == 0 && strings.Contains(out, want),
			"%s: exit code %d, %s%s", word, code, out, errOut)
	}
	_, _, code, _ := tool(t, "rules", "127")
	expect.True(t, code == 1, "a slot that does not exist: exit code %d", code)
}
