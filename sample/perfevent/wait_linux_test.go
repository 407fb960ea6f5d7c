package perfevent

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// A readable descriptor wakes a Wait, in short and long waits in any order; so does the start of a thread
// that a Watch reports.
func TestWait(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	defer w.Close()
	wait, err := NewWait(int(r.Fd()))
	must.Do(t, err)
	defer wait.Close()
	one := make([]byte, 1)
	for i, long := range []bool{true, false, false, true, true, false} {
		time.AfterFunc(20*time.Millisecond, func() { w.Write(one) })
		if began := time.Now(); long {
			wait.Long()
		} else {
			for wait.Short(time.Minute); time.Since(began) < time.Millisecond; {
				wait.Short(time.Minute)
			}
		}
		if n, err := r.Read(one); n != 1 || err != nil {
			t.Fatalf("wait %d: %d bytes, %v", i, n, err)
		}
	}
	for range 2 { // the second one finds the descriptor in the poller
		w.Write(one)
		time.Sleep(20 * time.Millisecond) // the poller sees it before the wait begins
		wait.Long()
		r.Read(one)
	}
}

func TestWaitForBirths(t *testing.T) {
	var tids []int
	threads, _ := os.ReadDir("/proc/self/task")
	for _, e := range threads {
		tid, _ := strconv.Atoi(e.Name())
		tids = append(tids, tid)
	}
	watch, err := OpenWatch(CPUs(), tids...)
	if err != nil {
		t.Skipf("SKIPPED-CHECK: the kernel gives no events: %v", err)
	}
	defer watch.Close()
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	defer time.AfterFunc(time.Minute, func() { w.Close() }).Stop() // ends a wait that has missed an event
	wait, err := NewWait(append(watch.FDs(), int(r.Fd()))...)
	must.Do(t, err)
	defer wait.Close()
	for i := range 6 {
		births := 0
		read := func() { watch.Read(func(*Record) { births++ }) }
		for read(); births > 0; read() { // from before the test
			births = 0
			time.Sleep(50 * time.Millisecond)
		}
		go exec.Command("true").Run()
		for began := time.Now(); births == 0 && time.Since(began) < time.Minute; read() {
			if i%2 == 0 {
				wait.Long()
			} else {
				wait.Short(time.Minute)
			}
		}
		if births == 0 {
			t.Fatalf("wait %d has missed the start of a program", i)
		}
	}
}
