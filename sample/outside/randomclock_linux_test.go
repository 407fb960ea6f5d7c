package outside

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// contents returns a descriptor of a file with the given text.
func contents(t *testing.T, text string) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	fd := must.Get(unix.Open(path, unix.O_RDONLY, 0))(t)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// Runnable threads count if they were on a processor, or would have been without the tool.
func TestAnswered(t *testing.T) {
	const call = 0x2000 // an address behind a system call
	before := threads.Counters{Cpu: 1e6, Wait: 5e6, Turns: 7}
	for _, c := range []struct {
		name  string
		after string // schedstat; "" = the thread has ended
		late  time.Duration
		ip    uint64
		cpu   uint64 // that the sample represents, 0 = it is not kept
	}{
		{"it never left the processor", "1050000 5000000 7", 0, 0x1000, 3e6},
		{"it waited for another program", "1000000 9000000 8", 0, 0x1000, 0},
		{"it waited for the tool", "1000000 5050000 8", 0, 0x1000, 3e6 / 4},
		{"it waited for as long as its sample was late", "1000000 5150000 8",
			100 * time.Microsecond, 0x1000, 3e6 / 4},
		{"it had a processor for a third of the time", "1025000 5050000 9", 0, 0x1000, 1e6},
		{"and longer", "1000000 5170000 8", 100 * time.Microsecond, 0x1000, 0},
		{"it has just woken up", "1000000 5000000 8", 0, call, 0},
		{"it worked in the system call", "1020000 5000000 8", 0, call, 3e6},
		{"it has ended", "", 0, 0x1000, 3e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Engine{}
			e.Period = 1e6
			e.Syscalls = sampler.NewSyscalls(context.ArchAMD64, nil)
			e.Syscalls.At = map[uint64]bool{call: true, 0x1000: false}
			k := &threads.Task{Stat: contents(t, c.after)}
			k.Drawn = threads.Draw{Open: true, Before: before, Wake: 1000, Weight: 3}
			e.random.open = 1
			regs := context.AMD64{RIP: c.ip}
			s := &sampler.Sample{Time: 1000 + int64(c.late)}
			s.Regs = context.FromAMD64(regs)
			keep := e.answered(k, s)
			expect.True(t, keep == (c.cpu > 0) && s.Cpu == c.cpu && e.random.open == 0 && !k.Drawn.Open &&
				e.random.kept+e.random.rejected == 1 && (e.random.kept == 1) == keep,
				"kept: %v, %d ns, %+v", keep, s.Cpu, e.random)
		})
	}
}

// For a client library, a sample represents the thread's CPU time since its last one, within bounds.
func TestAnsweredForClient(t *testing.T) {
	e := &Engine{}
	e.Period, e.Config.Client = 1e6, true
	k := &threads.Task{Base: 4e6}
	for _, c := range []struct{ clock, want string }{
		{"9000000 0 7", "5000000"}, {"11000000 0 7", "2000000"}, {"11000000 0 7", "1"}, {"10000000 0 7", "1"},
		{"99000000 0 7", "16000000"}, {"100000000 0 7", "1000000"},
	} {
		k.Stat = contents(t, c.clock)
		k.Drawn = threads.Draw{Open: true, Before: threads.Counters{Turns: 7}, Weight: 1}
		s := &sampler.Sample{}
		e.answered(k, s)
		expect.True(t, fmt.Sprint(s.Cpu) == c.want, "%s: %d ns, want %s", c.clock, s.Cpu, c.want)
	}
}

// The state of a thread is found whatever its name contains.
func TestRuns(t *testing.T) {
	for text, runs := range map[string]bool{
		"12 (worker) R 1 2 3": true,
		"12 (worker) S 1 2 3": false,
		"12 (a) R 1 (b) D 1":  false,
		"12 (a) S (b) R 1":    true,
		"12 () R":             true,
		"12 ()":               false,
		"12 () ":              false,
		"":                    false,
		"R":                   false,
	} {
		f := &threads.Files{}
		k := &threads.Task{StateFile: contents(t, text) + 1}
		got := f.Runs(k)
		expect.True(t, got == runs && !k.Ended, "%q: %v, ended %v", text, got, k.Ended)
	}
	f := threads.OpenFiles(os.Getpid())
	defer f.Close(nil)
	k := &threads.Task{TID: 1 << 30}
	expect.True(t, !f.Runs(k) && k.Ended, "a thread that does not exist has not ended")
}

// The intervals between moments are exponentially distributed, so no work of the program stays in step.
func TestNextDraw(t *testing.T) {
	e := &Engine{}
	e.Period = 1e6
	var sum time.Duration
	short := 0
	const n = 100000
	for range n {
		d := e.nextDraw()
		must.True(t, d >= 0 && d <= threads.Longest, "%v", d)
		if sum += d; d < 100*time.Microsecond {
			short++
		}
	}
	e.Period = 1e9 // longer than Longest
	for range 1000 {
		d := e.nextDraw()
		must.True(t, d >= 0 && d <= threads.Longest, "%v of a long period", d)
	}
	mean := sum / n
	expect.True(t, mean >= 980*time.Microsecond && mean <= 1020*time.Microsecond, "a mean of %v", mean)
	if short < n/100*8 || short > n/100*11 { // 1 - exp(-0.1) = 9.5 %
		t.Errorf("%d of %d intervals are a tenth of the mean", short, n)
	}
}

// A request to a thread that has ended is closed.
func TestDrawClosed(t *testing.T) {
	var r randomClock
	k := &threads.Task{Drawn: threads.Draw{Open: true}}
	r.open = 2
	r.Close(k)
	r.Close(k)
	expect.True(t, r.open == 1 && !k.Drawn.Open, "%d open", r.open)
}
