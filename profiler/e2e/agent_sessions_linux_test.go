package e2e

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	recorder "github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The agent begins a new session when its rate changes or a recording fails. Nothing remains of the old one:
// no goroutine, descriptor, or mapping, and almost no memory.
func TestSessionsLeaveNothing(t *testing.T) {
	const sessions, most = 6, 2 << 20 // bytes for all of them; the tables of one session have more
	p := idleProcess(t, "channel-idle")
	began := 0
	session := func() {
		stop := make(chan struct{})
		_, err := recorder.Run(options.Options{PID: p.pid, Rate: 19, WallEvery: time.Second, Stop: stop, Relay: func() { began++; time.AfterFunc(time.Second, func() { close(stop) }) }})
		if err != nil || began == 0 {
			t.Fatal(err)
		}
	}
	session()
	session() // loads what is loaded only once
	before := heldNow(t)
	for range sessions {
		session()
	}
	after := heldNow(t)
	if t.Logf("before %+v, after %+v", before, after); after.goroutines > before.goroutines || after.descriptors > before.descriptors || after.mappings > before.mappings || after.bytes > before.bytes+most {
		t.Errorf("%d sessions leave %+v, before %+v", sessions, after, before)
	}
}

// held is what this process holds.
type held struct {
	goroutines, descriptors, mappings int // mappings of files
	bytes                             int64
}

// heldNow waits until the timers of earlier recordings have expired: the longest has 30 s.
func heldNow(t *testing.T) (h held) {
	t.Helper()
	time.Sleep(32 * time.Second)
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
	maps, _ := os.ReadFile("/proc/self/maps")
	return held{runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "seedwalk-probe"), int64(m.HeapAlloc)}
}
