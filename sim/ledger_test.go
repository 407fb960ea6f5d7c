package sim_test

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

// The CLR here says whatever it may say, and every answer is tried after every
// other: an odometer of choices. What a sampler calls is held against a ledger of
// what is claimed, suspended, asked and stopped at the time.

// odometer draws the next choice; more goes to the next path and answers false
// after the last.
type odometer struct {
	digits, widths []int
	at             int
}

func (o *odometer) choose(n int) int {
	if o.at == len(o.digits) {
		o.digits, o.widths = append(o.digits, 0), append(o.widths, n)
	}
	o.at++
	return o.digits[o.at-1]
}

func (o *odometer) more() bool {
	for o.at = 0; len(o.digits) > 0; o.digits, o.widths = o.digits[:len(o.digits)-1],
		o.widths[:len(o.widths)-1] {
		if i := len(o.digits) - 1; o.digits[i]+1 < o.widths[i] {
			o.digits[i]++
			return true
		}
	}
	return false
}

// ledger is what all calls have come to.
type ledger struct {
	odometer
	log                []string
	wrong              string
	pauses             int
	now                int64
	verdict            seed.Verdict
	claimed, suspended clr.ThreadID
	tries              int
	had                bool                // the context of the try
	denied             bool                // the last try's suspension
	result             clr.HRESULT         // the last try's
	walks              int                 // of the try
	look               look                // the second of the try
	primedBy           clr.ThreadID        // the thread that reported a frame
	runtime, inside    bool                // the runtime is suspended, destructions wait
	suspensions        int                 // asked for
	final              clr.HRESULT         // of the last
	asked, answered    map[int]clr.Thread  // of slots
	late               map[int]clr.Thread  // of slots that are still waited for
	alive, walked      map[clr.Thread]bool // as told, as done
}

var (
	_ clr.Threads     = (*ledger)(nil)
	_ clr.Runtime     = (*ledger)(nil)
	_ snapshot.Seeder = (*ledger)(nil)
)

// must notes a broken rule; the first is the one to tell.
func (l *ledger) must(ok bool, format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf(format, args...))
	ok = ok && len(l.log) < 4000
	if !ok && l.wrong == "" {
		l.wrong = l.log[len(l.log)-1]
	}
	if l.wrong != "" && len(l.log) > 500 {
		panic("it does not end, and was out of order: " + l.wrong)
	}
}

func (l *ledger) still() bool { return l.claimed == 0 && l.suspended == 0 && !l.runtime && !l.inside }

func (l *ledger) Claim(t clr.Thread) bool {
	l.must(l.claimed == 0 && l.suspended == 0, "claims %d while %d is claimed", t.ID, l.claimed)
	if l.choose(2) == 1 {
		return false
	}
	l.claimed = t.ID
	return true
}

func (l *ledger) Release(t clr.Thread) {
	l.must(l.claimed == t.ID && l.suspended == 0,
		"releases %d: %d is claimed, %d suspended", t.ID, l.claimed, l.suspended)
	l.claimed = 0
}

func (l *ledger) Prime(t clr.Thread) (int, clr.HRESULT) {
	l.must(l.claimed == t.ID && l.suspended == 0 && l.primedBy == 0,
		"primes with %d: %d is claimed, %d suspended, %d has primed", t.ID,
		l.claimed, l.suspended, l.primedBy)
	if l.choose(2) == 1 {
		return 0, clr.S_OK
	}
	l.primedBy = t.ID
	return 3, clr.S_OK
}

func (l *ledger) Suspend(_ int, t clr.Thread) clr.SuspendStatus {
	l.must(l.claimed == t.ID && l.suspended == 0 && l.primedBy != 0,
		"suspends %d: %d is claimed, %d suspended, %d has primed", t.ID, l.claimed, l.suspended, l.primedBy)
	l.had, l.result, l.walks, l.look = false, clr.E_FAIL, 0, notAgain
	s := clr.SuspendStatus(l.choose(3))
	if l.denied = s == clr.SuspendDenied; s == clr.Suspended {
		l.suspended = t.ID
		l.tries++
	}
	return s
}

// look is what a second look at a suspended thread finds.
type look uint8

const (
	notAgain  look = iota // there is none
	nothing               // no context is to be had any more
	inStub                // another ip only, in a stub: a collection has redirected the thread
	inCode                // another ip only, in no stub
	elsewhere             // in a stub, but the value was moved to another register
	lookCount
)

// moved reports whether the stack of the first look is gone.
func (k look) moved() bool { return k == elsewhere }

// There is one set of registers for every try, and one stack.
var (
	captured    = clr.Capture{Regs: context.FromAMD64(context.AMD64{RIP: 1})}
	ledgerStack [8]byte
)

// again is the second look of a try.
func (l *ledger) again(c *clr.Capture) bool {
	l.must(l.look == notAgain && l.verdict == seed.NotNeeded && l.walks == 1 &&
		l.result == clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX,
		"looks again: verdict %v, %d walks, the last %v", l.verdict, l.walks, l.result)
	l.look = notAgain + 1 + look(l.choose(int(lookCount)-1))
	c.Regs, c.Stack.Data = captured.Regs, ledgerStack[:]
	c.Regs.SetIP(2)
	if l.look == elsewhere {
		c.Regs.AMD64.GPR[context.RBX] = 1
	}
	return l.look != nothing
}

func (l *ledger) Context(_ int, c *clr.Capture) bool {
	if l.had && l.suspended == c.Thread.ID {
		return l.again(c)
	}
	c.Regs, c.Stack = captured.Regs, memory.Run{Data: ledgerStack[:]}
	l.must(l.suspended == c.Thread.ID && !l.had,
		"takes the context of %d: %d is suspended", c.Thread.ID, l.suspended)
	l.must(c.Frames == nil && !c.Seeded && c.Result.Failed() && !c.Full, "nothing of an earlier try is kept")
	if l.choose(2) == 1 {
		return false
	}
	l.had = true
	return true
}

// Seed implements snapshot.Seeder.
func (l *ledger) Seed(c *clr.Capture) seed.Verdict {
	l.must(l.suspended != 0 && l.had, "computes a seed")
	c.Seed = c.Regs
	switch {
	case l.look == inCode:
		return seed.NoManaged
	case l.look != notAgain:
		return seed.StubOnTop
	}
	return l.verdict
}

// answers are what DoStackSnapshot says; the last of them in the last two tries
// only, or there would be too many paths.
var answers = []clr.HRESULT{clr.S_OK, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, clr.E_FAIL,
	clr.CORPROF_E_STACKSNAPSHOT_ABORTED, clr.E_INVALIDARG, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX}

func (l *ledger) DoStackSnapshot(i int, c *clr.Capture) {
	c.Frames = []clr.SnapshotFrame{{}}
	if l.runtime {
		t := l.answered[i]
		l.must(l.inside && t.ID != 0 && t == c.Thread && !l.walked[t] && len(l.asked) == 0,
			"walks %d in slot %d: %d answered, %d open", c.Thread.ID, i, t.ID, len(l.asked))
		l.walked[t] = true
		return
	}
	l.must(l.suspended == c.Thread.ID && l.had, "walks %d: %d is suspended", c.Thread.ID, l.suspended)
	l.walks++
	redirected := l.walks == 2 && l.look == inStub
	l.must(l.walks == 1 || redirected, "walks it for time %d after look %d", l.walks, l.look)
	l.must(c.Seeded == (l.verdict == seed.Found || redirected),
		"the seed is given: %v; verdict %v, walk %d", c.Seeded, l.verdict, l.walks)
	l.must(c.Regs == captured.Regs && c.Seed == captured.Regs, "walks from what was captured first")
	n := len(answers)
	if l.tries < snapshot.MaxTries-1 {
		n--
	}
	l.result = answers[l.choose(n)]
	c.Result = l.result
}

func (l *ledger) Resume(_ int, t clr.Thread) {
	l.must(l.suspended == t.ID && t.ID != 0, "resumes %d: %d is suspended", t.ID, l.suspended)
	l.suspended = 0
}

func (l *ledger) FunctionFromIP(uint64) (clr.FunctionID, clr.HRESULT) { return 0, clr.E_FAIL }

func (l *ledger) Now() int64 { l.now++; return l.now }

func (l *ledger) Pause(ns int64) {
	l.must(l.still() && ns > 0, "pauses for %d ns: %d is claimed, %d suspended, the runtime %v", ns,
		l.claimed, l.suspended, l.runtime)
	l.pauses++
}

func (l *ledger) SuspendRuntime() clr.HRESULT {
	again := l.suspensions == 0 || clr.SuspensionRetry(l.final)
	l.must(l.still() && l.pauses == l.suspensions && again,
		"suspends the runtime, %d times after %d pauses, the last %v", l.suspensions, l.pauses, l.final)
	l.suspensions++
	l.final = []clr.HRESULT{clr.S_OK, clr.CORPROF_E_SUSPENSION_IN_PROGRESS, clr.E_NOTIMPL}[l.choose(3)]
	l.runtime = !l.final.Failed()
	return l.final
}

func (l *ledger) ResumeRuntime() clr.HRESULT {
	l.must(l.runtime && !l.inside, "resumes the runtime: suspended %v, inside %v", l.runtime, l.inside)
	l.runtime = false
	return clr.S_OK
}

func (l *ledger) Enter() {
	l.must(l.runtime && !l.inside, "enters")
	l.inside = true
}

func (l *ledger) Leave() {
	l.must(l.runtime && l.inside && len(l.asked) == 0,
		"leaves: inside %v, %d questions open", l.inside, len(l.asked))
	l.inside = false
}

func (l *ledger) Alive(t clr.Thread) bool {
	l.must(l.inside, "asks whether %d is alive", t.ID)
	if l.choose(2) == 1 {
		return false
	}
	l.alive[t] = true
	return true
}

func (l *ledger) Ask(i int, t clr.Thread) {
	_, twice := l.asked[i]
	l.must(l.inside && l.alive[t] && !twice, "asks %d into slot %d: alive %v", t.ID, i, l.alive[t])
	l.asked[i] = t
}

func (l *ledger) Await(i int, c *clr.Capture) {
	l.must(l.inside && l.asked[i] == c.Thread && c.Thread.ID != 0,
		"awaits %d in slot %d, which %d was asked into", c.Thread.ID, i, l.asked[i].ID)
	l.must(c.Frames == nil && c.Result.Failed(), "nothing of an earlier round is kept")
	delete(l.asked, i)
	c.Status = []clr.CaptureStatus{clr.Captured, clr.CaptureNoAnswer,
		clr.CaptureGone, clr.CaptureLate}[l.choose(4)]
	if c.Status != clr.CaptureGone {
		l.answered[i] = c.Thread
	}
	if c.Status == clr.CaptureLate {
		l.late[i] = c.Thread
	}
}

func (l *ledger) Late(i int, c *clr.Capture) {
	l.must(!l.runtime && !l.inside && l.late[i] == c.Thread && c.Thread.ID != 0,
		"awaits %d late in slot %d: suspended %v, inside %v", c.Thread.ID, i, l.runtime, l.inside)
	delete(l.late, i)
	c.Status = clr.Captured
}

func (l *ledger) reset() {
	*l = ledger{odometer: l.odometer, log: l.log[:0], verdict: l.verdict,
		late: map[int]clr.Thread{}, asked: map[int]clr.Thread{}, answered: map[int]clr.Thread{},
		alive: map[clr.Thread]bool{}, walked: map[clr.Thread]bool{}}
}

// told fails the test with what led to a fault.
func (l *ledger) told(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\nafter %q", fmt.Sprintf(format, args...), l.log)
}

// advised is what a sample's last try must be taken for, written down once more.
func (l *ledger) advised(claimed bool) snapshot.Advice {
	switch {
	case l.denied:
		return snapshot.AdviceDenied
	case !claimed || !l.had:
		return snapshot.AdviceGone
	}
	switch l.result {
	case clr.S_OK:
		return snapshot.AdviceComplete
	case clr.CORPROF_E_STACKSNAPSHOT_UNSAFE:
		return snapshot.AdviceRetry
	case clr.CORPROF_E_STACKSNAPSHOT_ABORTED:
		return snapshot.AdvicePartial
	case clr.E_FAIL, clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX:
		if l.verdict == seed.NoManaged {
			return snapshot.AdviceNativeOnly
		}
		return snapshot.AdviceRetry
	}
	return snapshot.AdviceRefused
}
