package reader

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A thread's status shows whether it can be asked, and whether it is a thread of the runtime whose waits do
// not end.
func TestRank(t *testing.T) {
	status := func(name, state, blocked, filter string) string {
		return "Name:\t" + name + "\nState:\t" + state + "\nSigBlk:\t" + blocked + "\nSeccomp:\t" + filter +
			"\nSeccomp_filters:\t3\n"
	}
	for _, c := range []struct {
		name, status string
		want         ranked
	}{
		{"best", status(".NET SynchManag", "S (sleeping)", "0000000000000000", "0"), ranked{tid: 7}},
		{"second", status(".NET Finalizer", "R (running)", "0000000000000000", "0"), ranked{tid: 7, rank: 1}},
		{"the program's", status("worker", "S (sleeping)", "0000000000400000", "2"),
			ranked{tid: 7, rank: 3, blocked: 1 << 22, filtered: true}},
		{"ended", status("worker", "Z (zombie)", "0000000000000000", "0"),
			ranked{tid: 7, rank: 3, ended: true}},
		{"nothing", "", ranked{tid: 7, rank: 3}},
	} {
		expect.Equal(t, rank(7, c.status), c.want, c.name)
	}
}

// Every thread of a process is asked with a signal that the probe has, never with another. A process that has
// ended, or without the probe's handlers, is not the one that was opened.
func TestAnswerers(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	urgent := int(unix.SIGURG) // Go's runtime takes it
	c := &Readers{pid: pid, sig: func() (int, int) { return urgent, 0 }}
	a, ok := c.Reader(0)
	expect.True(t, ok && a.Signal == urgent && a.TID != 0 && c.First(a.TID), "%+v, %v", a, ok)
	seen := map[uint32]bool{}
	for i := range c.list {
		seen[c.list[i].TID] = true
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	expect.True(t, len(seen) == len(c.list) && len(seen) != 0 && len(seen) <= len(tasks),
		"%d threads listed %d times, of %d", len(seen), len(c.list), len(tasks))
	_, ok = c.Reader(len(c.list))
	expect.True(t, !ok, "there is one behind the last")
	both := &Readers{pid: pid, sig: func() (int, int) { return urgent, 50 }}
	both.choose()
	n := slices.IndexFunc(both.list, func(a probe.Reader) bool { return a.Signal == 50 })
	expect.True(t, n >= 1 && n <= bestFew, "the other signal is tried as number %d", n)
	expect.True(t, c.Living(), "this process is not there")
	cmd := exec.Command("sleep", "100")
	must.Do(t, cmd.Start())
	other := &Readers{pid: strconv.Itoa(cmd.Process.Pid), sig: c.sig}
	time.Sleep(10 * time.Millisecond)
	expect.True(t, !other.Living(), "a program without our handlers is taken for the one that was opened")
	_, ok = other.Reader(0)
	expect.True(t, ok, "SIGURG, which does no harm, is not sent")
	other.sig = func() (int, int) { return 0, 50 }
	other.choose()
	if _, ok := other.Reader(0); ok || len(other.list) != 1 {
		t.Error("a program without our handlers is sent a signal that ends it")
	}
	cmd.Process.Kill()
	cmd.Wait()
	_, ok = other.Reader(0)
	expect.True(t, !ok, "a process that has ended is asked")
}
