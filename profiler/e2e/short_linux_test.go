package e2e

import (
	"math"
	"testing"
)

// Short-lived threads: if each lives 5 ms, most of their time is in the profile, and the rest is stated with
// its cause. The sum is the clock of the process. Each method has its share, even if a thread ends before it
// has its own event.
func TestShortThreads(t *testing.T) {
	for _, c := range []struct {
		name  string
		least float64 // of the methods' time, in the profile
	}{
		{"kids-50", shortLeast}, {"kids-3", 0},
	} {
		for _, runtime := range both {
			t.Run(c.name+"/"+runtime, func(t *testing.T) {
				s := setting{scenario{c.name, true, true, 1}, runtime, "1000", "idle"}
				m := s.record(t, "auto", false)
				row := biasRow{setting: s, runs: []measurement{m}}
				for row.samples() < shortSamples && len(row.runs) < mostRuns {
					row.runs = append(row.runs, s.record(t, "auto", false))
				}
				shown := row.judgeTotal(t)
				truth, seen := 0.0, 0.0
				for _, name := range m.truth.methods() {
					truth, seen = truth+m.truth.method[name], seen+m.seen.method[name]
				}
				t.Logf("clock %s: %.1f %% of the short threads' time is in their methods, %.1f %% of the process's in the profile, not sampled: %v",
					m.seen.clock, 100*seen/truth, 100*shown, m.seen.notSampled)
				if seen < c.least*truth && m.seen.clock == clockPerf {
					t.Errorf("of %.0f ms in short threads, %.0f ms are in the profile", truth/1e6, seen/1e6)
				}
				v := judgeShare(row.runs, "KidsA", biasLimit, biasErrorsOnce)
				t.Logf("KidsA has %.1f %% of the time, the profile says %.1f %% by %.0f samples, limit %.1f", 100*v.truth, 100*v.mean, v.samples, 100*v.limit)
				if !v.ok() && m.seen.clock == clockPerf {
					t.Error("KidsA is not within the limit")
				}
			})
		}
	}
}

// shortLeast is the part of the time of threads that use 5 ms which must be located.
const shortLeast = 0.8

// shortSamples are enough to distinguish a method's share from 0.
const shortSamples = 400

// A program that ends at once has samples, and none is discarded: at least one per 10 ms of processor time.
func TestShortProgram(t *testing.T) {
	for _, runtime := range both {
		t.Run(runtime, func(t *testing.T) {
			p := record(t, "", on(t, runtime, "Exact", "hello", "0")...)
			truth, err := parseExact(p.stdout)
			if err != nil || p.code != 0 {
				t.Fatalf("%d, %v\n%s", p.code, err, p.stderr)
			}
			seen, samples := p.times(nil), 0.0
			for _, s := range p.Stacks {
				samples += s.CPUCount
			}
			t.Logf("%.0f ms of processor time: %.0f CPU samples, %d of all kinds, %d lost, %.0f ms accounted for, %.0f ms in the profile, not sampled %v, notes %v",
				truth.process/1e6, samples, p.Samples, p.Lost, seen.stated/1e6, seen.shown/1e6, seen.notSampled, p.Notes)
			if want := math.Floor(truth.process / 10e6); samples < want || p.Lost > 0 {
				t.Errorf("%.0f samples, want %.0f, %d lost", samples, want, p.Lost)
			}
			if seen.stated < 0.99*truth.process-1e6 || seen.stated > truth.process*(1+*biasTotal)+notWatched {
				t.Errorf("the process used %.0f ms, the profile accounts for %.0f ms", truth.process/1e6, seen.stated/1e6)
			}
		})
	}
}
