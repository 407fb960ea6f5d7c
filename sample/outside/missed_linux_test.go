package outside

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// Time whose samples are missing is not distributed over other samples, unless the loss may be chance.
func TestMissed(t *testing.T) {
	const period = 10_000_000
	for name, c := range map[string]struct{ weighed, lost, located, want uint64 }{
		"all there":                      {100 * period, 0, 100 * period, 0},
		"more than there are":            {110 * period, 0, 100 * period, 0},
		"a few less":                     {91 * period, 0, 100 * period, 0},
		"few samples":                    {0, 0, 9 * period, 0},
		"none":                           {0, 0, 10 * period, 10 * period},
		"an eighth of many":              {875 * period, 0, 1000 * period, 125 * period},
		"less than an eighth of many":    {876 * period, 0, 1000 * period, 0},
		"kernel time that was not shown": {100 * period, 60 * period, 60 * period, 20 * period},
	} {
		e := &Engine{Base: sampler.Base{Period: period}}
		if got := e.missed(&threads.Task{Weighed: c.weighed, KernelLost: c.lost}, c.located); got != c.want {
			t.Errorf("%s: %d ms, want %d", name, got/1e6, c.want/1e6)
		}
	}
}

// Missing samples are attributed to blocked signals only if the thread was seen to block one that is pending.
func TestNoteBlocked(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const period = 10_000_000
	e := &Engine{Base: sampler.Base{Period: period}, Table: threads.NewTable(os.Getpid()), legacy: int(unix.SIGURG)}
	task := func(spent uint64) *threads.Task {
		return &threads.Task{TID: uint32(unix.Gettid()), Last: threads.Counters{Cpu: spent}, Weighed: 2 * period}
	}
	check := func(name string, spent uint64, want bool) {
		t.Helper()
		k := task(spent)
		if e.noteBlocked(k); k.Blocks != want {
			t.Errorf("%s: %v, want %v", name, k.Blocks, want)
		}
	}
	check("not blocked", 20*period, false)
	set := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGURG - 1)}}
	var old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		t.Fatal(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	check("blocked, none pending", 20*period, false)
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGURG); err != nil {
		t.Fatal(err)
	}
	check("blocked and pending", 20*period, true)
	check("few samples are missing", 11*period, false)
}
