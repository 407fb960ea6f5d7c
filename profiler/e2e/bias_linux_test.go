package e2e

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Limits for the error of a method's share (1 = 100 %). The first applies if the kernel's perf events are
// allowed, or a processor is free for the tool.
const (
	biasLimit     = 0.03
	biasLimitFull = 0.05 // a full machine without perf events, and a target without a probe
)

// Standard errors beyond the limit. The permanent suite compares about twenty shares and must not fail by
// chance: 4.5 standard errors are exceeded once in 150,000 comparisons.
const (
	biasErrors     = 2
	biasErrorsOnce = 4.5
)

// Names of clocks, as in docs/json.md.
const (
	clockPerf   = "perf"
	clockRandom = "random"
	clockTimer  = "timer" // expires on the kernel's tick: work that starts with the tick is invisible
)

// notWatched is the CPU time, in nanoseconds, that a profile may lack: what the process uses before the
// tool knows it, and after the last destructor of its libraries, which prints its clock.
const notWatched = 40e6

// mostRuns bounds the runs that follow until a row has enough samples.
const mostRuns = 20

// lowCoverage is the part of the process's time below which a run's causes are printed.
const lowCoverage = 0.9

// unseenMethods is the CPU time, in nanoseconds, from which methods have samples at 99 Hz.
const unseenMethods = 300e6

// With fewer samples a share is not compared.
const fewSamples = 20

// biasRow is all runs of a setting.
type biasRow struct {
	setting
	runs    []measurement
	old     *measurement // by the old clock
	outside *measurement
}

func (r *biasRow) samples() (n float64) {
	for _, m := range r.runs {
		n += m.seen.samples
	}
	return n
}

// verdict describes one method's share.
type verdict struct {
	truth, mean, worst float64 // worst is the difference in the worst run
	samples            float64
	limit              float64
}

func (v verdict) ok() bool { return v.samples >= fewSamples && math.Abs(v.mean-v.truth) <= v.limit }

// judgeShare compares a method's share of all methods with the truth, over all runs.
func judgeShare(runs []measurement, method string, limit, errors float64) verdict {
	return judgePart(runs, (*exactTimes).share, method, limit, errors)
}

// judgePart compares a method's part of something with the truth, over all runs. Methods that lack the same
// part of their time have the right shares of all methods, but not of the process. Runs count by their time,
// because on a loaded machine some have little. A run without samples has no shares.
func judgePart(runs []measurement, part func(*exactTimes, string) float64, method string,
	limit, errors float64) (v verdict) {
	var all float64
	for _, m := range runs {
		if m.seen.samples == 0 {
			continue
		}
		truth, seen, time := part(&m.truth, method), part(&m.seen.exactTimes, method), m.truth.inMethods()
		all += time
		v.truth += truth * time
		v.mean += seen * time
		v.samples += m.seen.samples
		if math.Abs(seen-truth) > math.Abs(v.worst) {
			v.worst = seen - truth
		}
	}
	v.truth /= max(all, 1)
	v.mean /= max(all, 1)
	v.limit = limit + errors*math.Sqrt(v.truth*(1-v.truth)/math.Max(v.samples, 1))
	return v
}

// limits are the row's: the allowed difference, and standard errors.
func (r *biasRow) limits() (points, errors float64) {
	points, errors = biasLimit, biasErrors
	if r.load == "loaded" && r.runs[0].seen.clock != clockPerf {
		points = biasLimitFull
	}
	if *biasRuns == 1 {
		errors = biasErrorsOnce
	}
	return points, errors
}

func shareText(e *exactProfile, method string) string {
	if e == nil || e.samples == 0 {
		return "      -"
	}
	return fmt.Sprintf("%5.1f %%", 100*e.share(method))
}

// judge prints the row's lines and fails on values outside the limits.
func (r *biasRow) judge(t *testing.T) {
	points, errors := r.limits()
	perf, old, outside := pooledPerf(r.runs), (*exactProfile)(nil), (*exactProfile)(nil)
	if r.old != nil {
		old = &r.old.seen
	}
	if r.outside != nil {
		outside = &r.outside.seen
	}
	all := r.judgeTotal(t)
	for _, method := range r.runs[0].truth.methods() {
		v := judgeShare(r.runs, method, points, errors)
		t.Logf("%-26s %-12s truth %5.1f %%, seedwalk %5.1f %% (worst run %+5.1f), perf %s, old clock %s, outside %s; %6.0f samples, limit %4.1f; %s clock, %5.1f %% of the time shown",
			r.setting, method, 100*v.truth, 100*v.mean, 100*v.worst, shareText(perf, method),
			shareText(old, method), shareText(outside, method), v.samples, 100*v.limit,
			r.runs[0].seen.clock, 100*all)
		expect.True(t, v.ok(),
			"%v: %s has %.1f %% of the CPU time, the profile says %.1f %% by %.0f samples", r.setting,
			method, 100*v.truth, 100*v.mean, v.samples)
		v = judgePart(r.runs, (*exactTimes).ofProcess, method, points, errors)
		t.Logf("%-26s %-12s truth %5.1f %% of the process, seedwalk %5.1f %% (worst run %+5.1f)",
			r.setting, method, 100*v.truth, 100*v.mean, 100*v.worst)
		expect.True(t, v.ok(), "%v: %s has %.1f %% of the process's time, the profile says %.1f %%", r.setting,
			method, 100*v.truth, 100*v.mean)
		r.judgeOutside(t, method)
	}
}

// judgeTotal compares the process time in the profiles, and the time that they state, with the truth.
func (r *biasRow) judgeTotal(t *testing.T) (shown float64) {
	for _, m := range r.runs {
		if m.seen.stated == 0 {
			t.Logf("%v: the profile does not state the process's time", r.setting)
			continue
		}
		shown += m.seen.shown / m.truth.process / float64(len(r.runs))
		expect.True(t, m.seen.samples > 0 || m.truth.inMethods() < unseenMethods,
			"%v: the methods used %.0f ms, and have no sample", r.setting, m.truth.inMethods()/1e6)
		if m.seen.shown < lowCoverage*m.truth.process {
			t.Logf("%v: only %.0f of %.0f ms of one run are in the profile, not sampled %v", r.setting,
				m.seen.shown/1e6, m.truth.process/1e6, m.seen.notSampled)
		}
		if math.Abs(m.seen.stated-m.truth.process) > *biasTotal*m.truth.process+notWatched {
			t.Errorf("%v: the process used %.0f ms (%.0f in the methods), the profile accounts for %.0f ms (%.0f), not sampled %v",
				r.setting, m.truth.process/1e6, m.truth.inMethods()/1e6, m.seen.stated/1e6,
				m.seen.inMethods()/1e6, m.seen.notSampled)
		}
		if math.Abs(m.seen.process-m.seen.stated) > 0.01*m.seen.stated {
			t.Errorf("%v: the stacks add up to %.0f ms, the profile states %.0f ms", r.setting,
				m.seen.process/1e6, m.seen.stated/1e6)
		}
	}
	return shown
}

func (r *biasRow) judgeOutside(t *testing.T, method string) {
	if r.outside == nil {
		return
	}
	if v := judgeShare([]measurement{*r.outside}, method, biasLimitFull,
		biasErrors); v.samples >= fewSamples && !v.ok() {
		t.Errorf("%v: %s has %.1f %% of the CPU time, --outside says %.1f %% by %.0f samples",
			r.setting, method, 100*v.truth, 100*v.mean, v.samples)
	}
}

// pooledPerf are perf's samples of all runs.
func pooledPerf(runs []measurement) *exactProfile {
	e := exactProfile{exactTimes: exactTimes{method: map[string]float64{}}}
	for _, m := range runs {
		e.samples += m.perf.samples
		for name, n := range m.perf.method {
			e.method[name] += n
		}
	}
	return &e
}

// In programs that sleep, wait, and begin to run when a timer fires, each method has its share of the
// CPU time. The truth is the thread's own clock, read before and after each call. A second judge is
// perf, whose clock is the kernel's high-resolution timer.
func TestBias(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	beside := *biasBeside && perfPermitted(t)
	if *biasBeside && !beside {
		t.Log("perf is missing or not permitted: there is no second judge")
	}
	for _, s := range settings(t) {
		if permanent() && s.client() {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			if s.scenario.name == "kernel" && os.Geteuid() != 0 {
				t.Skip("SKIPPED-CHECK: only root may sample the kernel everywhere")
			}
			s.pair(t)
			if s.load == "loaded" {
				hogs(t)
			}
			row := biasRow{setting: s}
			for len(row.runs) < *biasRuns || len(row.runs) < mostRuns && row.samples() < *biasSamples {
				row.runs = append(row.runs, s.record(t, *biasClock, beside && s.scenario.leaf))
			}
			if *biasBeside && s.load == "idle" {
				old, outside := s.record(t, "timer-overrun", false), s.recordOutside(t)
				row.old, row.outside = &old, &outside
			}
			if clock := row.runs[0].seen.clock; *biasClock == "auto" && s.scenario.sleeps &&
				clock == clockTimer {
				t.Skipf("SKIPPED-CHECK: samples are chosen by %q, which does not see work that is bound to the kernel's tick", clock)
			}
			if clock := row.runs[0].seen.clock; s.scenario.name == "blocked" && clock != clockPerf {
				t.Skipf("SKIPPED-CHECK: only the kernel's copies show a thread that blocks signals; samples are chosen by %q", clock)
			}
			row.judge(t)
		})
	}
}

// The judge refuses methods that all lack a third of their time: the process has the rest.
func TestBiasJudgeProcess(t *testing.T) {
	of := func(each float64) exactTimes {
		return exactTimes{method: map[string]float64{"A": each, "B": each}, process: 1000}
	}
	m := measurement{truth: of(300), seen: exactProfile{exactTimes: of(200), samples: 2000}}
	all := judgeShare([]measurement{m}, "A", biasLimit, biasErrorsOnce)
	expect.True(t, all.ok(), "of all methods: %+v", all)
	process := judgePart([]measurement{m}, (*exactTimes).ofProcess, "A", biasLimit, biasErrorsOnce)
	expect.True(t, !process.ok() && process.truth == 0.3 && process.mean == 0.2, "of the process: %+v",
		process)
}

// The judge refuses the old clock's result for an asynchronous server, and accepts perf's in the same run.
func TestBiasJudge(t *testing.T) {
	of := func(a, samples float64) measurement {
		return measurement{
			truth: exactTimes{method: map[string]float64{"A": 302, "B": 698}},
			seen: exactProfile{exactTimes: exactTimes{method: map[string]float64{"A": a, "B": 1000 - a}},
				samples: samples},
		}
	}
	for _, c := range []struct {
		a, samples float64
		ok         bool
	}{{29, 1712, false}, {38, 200, false}, {316, 1299, true}, {302, 2000, true}, {302, 10, false},
		{360, 2000, true}, {425, 2000, false}} {
		v := judgeShare([]measurement{of(c.a, c.samples)}, "A", biasLimit, biasErrorsOnce)
		expect.True(t, v.ok() == c.ok, "%v of a thousand by %v samples: %+v", c.a, c.samples, v)
	}
}

// The permanent suite takes the defaults; make bias takes everything.
var (
	biasRows = flag.String("bias-rows", "tick-4,async3,timer10,blocked,fault,steady,leaf-1",
		"scenarios of TestBias, with commas between; all of them if \"all\"")
	biasTime = flag.Duration("bias-time", 5*time.Second, "how long a scenario of TestBias runs")
	biasRuns = flag.Int("bias-runs", 1, "how often TestBias runs each row, at the least")

	// On a busy machine, and at a low rate, a run has few samples.
	biasSamples = flag.Float64("bias-samples", 100,
		"repeat each row of TestBias until it has this many samples, at most 20 times")
	biasRates = flag.String("bias-rates", "1000", "samples a second, with commas between")
	biasLoads = flag.String("bias-loads", "idle",
		"idle, loaded (twice as many hogs as processors), rt (SCHED_RR), with commas between")
	biasClock = flag.String("bias-clock", "auto",
		"the clock that is judged; timer-overrun is the old one, which must fail")
	biasTotal = flag.Float64("bias-total", 0.1,
		"by how much the CPU time that a profile accounts for may differ from the process's clock")
	biasBeside = flag.Bool("bias-beside", false,
		"print perf's cpu-clock, and on an idle machine the old clock and --outside, beside it")
)

// scenario is one of Exact.cs.
type scenario struct {
	name   string
	sleeps bool // it sleeps or waits, and begins to run when a timer fires
	leaf   bool // the methods call nothing: perf's samples without stacks tell them apart
	slow   int  // runs this many times as long: it sleeps most of the time
}

var scenarios = []scenario{
	{"tick-4", true, true, 1}, {"tick-10", true, true, 1}, {"sleep50", true, true, 3},
	{"async1", true, true, 1}, {"async3", true, true, 1}, {"async5", true, true, 1},
	{"async10", true, true, 1}, {"async20", true, true, 1}, {"async100", true, true, 1},
	{"timer10", true, true, 2}, {"server", true, true, 1}, {"turns10", true, true, 1},
	{"kids-50", true, true, 1}, {"kids-30", true, true, 1}, {"kids-3", true, true, 1},
	{"collect", false, false, 1}, {"compile", false, false, 1}, {"native", false, false, 1},
	{"kernel", false, false, 1}, {"blocked", false, false, 1},
	{"fault", false, false, 1}, {"steady", false, true, 1}, {"leaf-1", false, false, 1},
}

// chosenScenarios are those that the flags name.
func chosenScenarios(t *testing.T) (chosen []scenario) {
	names := strings.Split(*biasRows, ",")
	for _, s := range scenarios {
		if *biasRows == "all" || slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("no scenario %q", *biasRows)
	}
	return chosen
}

// setting is how a row is measured.
type setting struct {
	scenario scenario
	runtime  string
	rate     string
	load     string
}

func (s setting) String() string {
	return s.scenario.name + "/" + s.runtime + "/" + s.rate + "/" + s.load
}

// permanent reports whether the flags ask for the permanent suite.
func permanent() bool { return *biasRuns == 1 && *biasRows != "all" }

// client reports whether the permanent suite has a setting with the client library, and not with the tool:
// each scenario is tried on one runtime with each of them. Both have the same engine.
func (s setting) client() bool {
	i := slices.IndexFunc(scenarios, func(c scenario) bool { return c.name == s.scenario.name })
	return turn(i, s.runtime)
}

// settings are all that the flags ask for.
func settings(t *testing.T) (all []setting) {
	for _, load := range strings.Split(*biasLoads, ",") {
		for _, rate := range strings.Split(*biasRates, ",") {
			for _, runtime := range both {
				for _, sc := range chosenScenarios(t) {
					all = append(all, setting{sc, runtime, rate, load})
				}
			}
		}
	}
	return all
}
