package sim_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Whatever the CLR answers, a sample of one thread leaves nothing claimed or
// suspended, does nothing out of order, ends, and says what happened.
func TestSampleProtocol(t *testing.T) {
	paths := 0
	for v := range seed.VerdictCount {
		l := &ledger{verdict: seed.Verdict(v)}
		for first := true; first || l.more(); first = false {
			l.reset()
			l.primedBy = 99
			paths++
			s := primed(l)
			o := s.Sample(clr.Thread{ID: 7})
			claimed := l.log[len(l.log)-1] != "claims 7 while 0 is claimed"
			if !claimed {
				l.had, l.denied = false, false
			}
			want := l.advised(claimed)
			switch {
			case l.wrong != "":
				l.told(t, "out of order: %s", l.wrong)
			case !l.still():
				l.told(t, "left behind: %d claimed, %d suspended", l.claimed, l.suspended)
			case o.Tries != l.tries || l.tries > snapshot.MaxTries:
				l.told(t, "%d suspensions, it says %d", l.tries, o.Tries)
			case o.Advice != want:
				l.told(t, "it advises %v, not %v", o.Advice, want)
			case want == snapshot.AdviceRetry && l.tries != snapshot.MaxTries:
				l.told(t, "it gives up after %d tries", l.tries)
			case l.pauses != max(0, len(tries(l))-1):
				l.told(t, "%d pauses between %d tries", l.pauses, len(tries(l)))
			case s.Capture.Thread.ID != 7 || (s.Capture.Status == clr.Captured) != (claimed && l.had):
				l.told(t, "the capture is of %d, %v", s.Capture.Thread.ID, s.Capture.Status)
			case s.Capture.Status == clr.Captured:
				l.captured(t, &s.Capture)
			}
		}
	}
	expect.True(t, paths >= 500, "%d paths only", paths)
	t.Logf("%d paths", paths)
}

// captured holds what the last try captured against what was looked at.
func (l *ledger) captured(t *testing.T, c *clr.Capture) {
	t.Helper()
	twice := l.verdict == seed.NotNeeded &&
		(l.look != notAgain || l.result == clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX)
	switch {
	case c.Regs != captured.Regs:
		l.told(t, "captured at %d", c.Regs.IP())
	case l.look.moved() != (len(c.Stack.Data) == 0):
		l.told(t, "look %d, %d bytes of stack", l.look, len(c.Stack.Data))
	case twice != (l.look != notAgain) || (l.look == inStub) != (l.walks == 2):
		l.told(t, "look %d, %d walks", l.look, l.walks)
	}
}

// tries are the claims of a sample.
func tries(l *ledger) (out []string) {
	for _, line := range l.log {
		if line == "claims 7 while 0 is claimed" {
			out = append(out, line)
		}
	}
	return out
}

// primed is a sampler that has been primed by a world of its own.
func primed(l *ledger) *snapshot.ThreadSampler {
	p := *l
	*l = ledger{odometer: odometer{}, log: l.log}
	s := snapshot.NewThreads(l, l)
	s.Prime([]clr.Thread{{ID: 99}})
	*l = p
	return s
}

// Nothing is suspended before a call has reported a frame; once one has, no
// other is made.
func TestPrimeProtocol(t *testing.T) {
	l := &ledger{}
	for first := true; first || l.more(); first = false {
		l.reset()
		s := snapshot.NewThreads(l, l)
		if o := s.Sample(clr.Thread{ID: 1}); o.Advice != snapshot.AdviceNotPrimed || o.Tries != 0 ||
			len(l.log) != 0 {
			l.told(t, "a sample before priming: %+v", o)
		}
		ok := s.Prime([]clr.Thread{{ID: 1}, {ID: 2}, {ID: 3}})
		switch {
		case l.wrong != "":
			l.told(t, "out of order: %s", l.wrong)
		case !l.still():
			l.told(t, "left behind: %d claimed", l.claimed)
		case ok != (l.primedBy != 0):
			l.told(t, "primed: %v; %d has reported a frame", ok, l.primedBy)
		}
	}
}

// The test tries every combination of answers of the runtime and its threads. In each, a round
// resumes exactly once whatever it has suspended. It sends no request to a thread that has
// ended. Before the CLR walks, it waits for every thread that received a request.
func TestRoundProtocol(t *testing.T) {
	const slots = 2
	all := []clr.Thread{{ID: 1}, {ID: 2}, {ID: 3}}
	paths := 0
	for n := range len(all) + 1 {
		l := &ledger{}
		for first := true; first || l.more(); first = false {
			l.reset()
			paths++
			s := snapshot.New(l, slots)
			for i := range s.Captures {
				s.Captures[i].Frames = make([]clr.SnapshotFrame, 1) // an earlier round's
			}
			o := s.Round(all[:n])
			want := 0
			if !l.final.Failed() {
				want = min(n, slots)
			}
			switch {
			case l.wrong != "":
				l.told(t, "out of order: %s", l.wrong)
			case !l.still():
				l.told(t, "left behind: the runtime suspended %v, inside %v", l.runtime, l.inside)
			case len(l.late) != 0:
				l.told(t, "%d late copies are not waited for", len(l.late))
			case o.Result != l.final || o.Captures != want || o.Retries != l.suspensions-1 ||
				o.Retries > snapshot.MaxRetries:
				l.told(t, "%d suspensions, the last %v; it says %+v", l.suspensions, l.final, o)
			case clr.SuspensionRetry(l.final) != (o.Retries == snapshot.MaxRetries && l.final.Failed() &&
				l.final != clr.E_NOTIMPL):
				l.told(t, "%v after %d retries", l.final, o.Retries)
			case len(l.walked) != len(l.answered):
				l.told(t, "%d threads answered, %d were walked", len(l.answered), len(l.walked))
			}
			for i := range o.Captures {
				c := &s.Captures[i]
				if c.Thread != all[i] || (c.Status == clr.CaptureGone) == l.walked[all[i]] {
					l.told(t, "capture %d is of %d, %v", i, c.Thread.ID, c.Status)
				}
			}
		}
	}
	t.Logf("%d paths", paths)
}

// inWindow are the packages that run while threads are suspended.
var inWindow = []string{"stack/snapshot", "stack/seed", "unwind", "unwind/amd64",
	"unwind/arm64", "context/memory"}

// A lock that is free cannot be seen by running the code that takes it, nor can
// a message that is not read. What they are made of must not be there.
func TestNoLocksNoLogs(t *testing.T) {
	forbidden := []string{"sync", "os", "log", "log/slog", "fmt", "time", "runtime", "syscall", "unsafe", "C"}
	args := []string{"list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}"}
	for _, dir := range inWindow {
		args = append(args, "../"+dir)
	}
	list, err := exec.Command("go", args...).Output()
	must.Equal(t, err, nil, "go list")
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	must.True(t, len(lines) == len(inWindow), "%d packages, not %d:\n%s", len(lines), len(inWindow), list)
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		for _, p := range strings.Fields(imports) {
			expect.True(t, !slices.Contains(forbidden, p),
				"%s imports %s: what it offers has no place in the suspended window", name, p)
		}
	}
}

// Nothing is allocated between suspend and resume, nor by a merge: whatever the
// world that the sampler looks at.
func TestNoAllocation(t *testing.T) {
	all := recordings()
	tl := newTools()
	p := &replay{all: all}
	samplers := [2]*snapshot.ThreadSampler{snapshot.NewThreads(p, tl.seed[image.AMD64]),
		snapshot.NewThreads(p, tl.seed[image.ARM64])}
	for _, s := range samplers {
		must.True(t, s.Prime(make([]clr.Thread, 1)), "not primed")
	}
	out := make([]merge.Frame, 512)
	for i := range all {
		r := &all[i]
		p.next = i
		seeder, m := tl.use(r)
		s := samplers[r.w.Arch]
		var c clr.Capture
		for what, f := range map[string]func(){
			"a sample": func() { s.Sample(r.capture.Thread) },
			"a seed":   func() { c = r.capture; seeder.Seed(&c) },
			"a merge":  func() { m.Merge(&r.capture, out) },
		} {
			must.Equal(t, testing.AllocsPerRun(2, f), 0,
				"%v, %v: allocations of %s", r.w.Variant, r.w.Arch, what)
		}
	}
}

// The same of a round over all threads of a runtime.
func TestNoAllocationInRounds(t *testing.T) {
	p := &replay{all: recordings()}
	const slots = 8
	s := snapshot.New(p, slots)
	threads := make([]clr.Thread, slots)
	expect.Equal(t, testing.AllocsPerRun(10, func() { s.Round(threads) }), 0, "a round allocates times")
}
