package e2e

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

// The permanent suite takes the defaults; make bias takes everything.
var (
	biasRows   = flag.String("bias-rows", "tick-4,async3,timer10,blocked,steady", "scenarios of TestBias, with commas between; all of them if \"all\"")
	biasTime   = flag.Duration("bias-time", 5*time.Second, "how long a scenario of TestBias runs")
	biasRuns   = flag.Int("bias-runs", 1, "how often TestBias runs each row")
	biasRates  = flag.String("bias-rates", "1000", "samples a second, with commas between")
	biasLoads  = flag.String("bias-loads", "idle", "idle, loaded (twice as many hogs as processors), rt (SCHED_RR), with commas between")
	biasClock  = flag.String("bias-clock", "auto", "the clock that is judged; timer-overrun is the old one, which must fail")
	biasTotal  = flag.Float64("bias-total", 0.1, "by how much the processor time that a profile accounts for may differ from the process's clock")
	biasBeside = flag.Bool("bias-beside", false, "print perf's cpu-clock, and on an idle machine the old clock and --outside, beside it")
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
	{"timer10", true, true, 2}, {"server", true, true, 1},
	{"kids-50", true, true, 1}, {"kids-30", true, true, 1}, {"kids-3", true, true, 1},
	{"collect", false, false, 1}, {"compile", false, false, 1}, {"native", false, false, 1}, {"kernel", false, false, 1}, {"blocked", false, false, 1}, {"steady", false, true, 1},
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
