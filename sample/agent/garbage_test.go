package agent

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
)

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

var litter []byte

// littering allocates so much in each round that a garbage collection is due, and checks whether one ran
// while a thread was suspended.
type littering struct {
	fakeThreads
	at       uint32
	inWindow int
}

func (f *littering) Threads(buf []Thread) []Thread {
	litter = make([]byte, 16<<20)
	return f.fakeThreads.Threads(buf)
}

func (f *littering) Suspend(i int, t clr.Thread) clr.SuspendStatus {
	f.at = collections()
	return f.fakeThreads.Suspend(i, t)
}

func (f *littering) Resume(i int, t clr.Thread) {
	f.inWindow += int(collections() - f.at)
	f.fakeThreads.Resume(i, t)
}

func TestGarbageBetweenSuspensions(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f := &littering{fakeThreads: fakeThreads{fake: fake{world: fs.Build(fs.Root, fs.Managed, fs.Native), rounds: 20}}}
	begin := collections()
	NewThreads(f, Config{RateHz: 1e6, Slots: 4}, func([]byte) error { return nil }).Run()
	if n := collections() - begin; n < 5 || f.inWindow != 0 {
		t.Errorf("%d collections, %d of them while a thread was suspended", n, f.inWindow)
	}
}
