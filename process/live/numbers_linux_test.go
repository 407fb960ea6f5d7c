package live

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The number of a thread that has ended is still known: its last samples may not be read yet.
func TestNumbersOfEnded(t *testing.T) {
	tids, end := make(chan int), make(chan bool)
	go onOwnThread(func() {
		tids <- unix.Gettid()
		<-end
	})
	tid := uint32(<-tids)
	n := &Numbers{pid: os.Getpid(), foreign: true} // here both numbers are the same
	inner, ok := n.Inner(tid)
	must.True(t, ok && inner == tid, "%d, %v", inner, ok)
	close(end)
	for begin := time.Now(); !errors.Is(unix.Tgkill(os.Getpid(), int(tid), 0), unix.ESRCH); {
		must.True(t, time.Since(begin) < time.Minute, "the thread lives")
		time.Sleep(time.Millisecond)
	}
	n.Refresh()
	outer, ok := n.Outer(tid)
	expect.True(t, ok && outer == tid, "%d, %v", outer, ok)
	_, ok = n.Inner(tid)
	expect.True(t, !ok, "it can be asked for samples")
}
