package cpuring

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// open returns a sampler until the test ends, and skips the test if the kernel permits none.
func open(t *testing.T, cfg Config) *Sampler {
	t.Helper()
	s, err := New(cfg)
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skipf("SKIPPED-CHECK: %v", err)
	}
	must.Do(t, err)
	t.Cleanup(s.Close)
	return s
}

// A sampler of kernel time has no hits in user code, except of threads that were added for both.
func TestBoth(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := open(t, Config{PID: os.Getpid(), Kernel: true, Period: ms, Stack: StackCopy})
	tid := uint32(unix.Gettid())
	user := func(rounds int) (hits int) {
		early(rounds)
		s.Read(func(r *perfevent.Record) {
			if r.TID == tid && !r.Kernel {
				hits++
			}
		})
		return hits
	}
	rounds := 50 * roundsOf()
	if err := s.Add(tid); err == nil { // without privilege, the kernel refuses
		expect.Equal(t, user(rounds), 0, "kernel time only: hits in user code")
		s.Remove(tid)
	}
	must.Do(t, s.AddBoth(tid))
	n := user(rounds)
	expect.True(t, n >= 30 && n <= 70, "both: %d hits in 50 ms of user code", n)
}

// Hits until Stop count if they are read later. Later ones do not, and none of a stay that Remove has ended.
func TestStop(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := open(t, Config{PID: os.Getpid(), Kernel: true, Period: ms, Stack: StackCopy})
	tid := uint32(unix.Gettid())
	read := func() (hits int) {
		s.Read(func(*perfevent.Record) { hits++ })
		return hits
	}
	must.Do(t, s.AddBoth(tid))
	before := threadTime()
	early(20 * roundsOf())
	s.Stop(tid)
	ran := float64(threadTime()-before) / ms
	s.Stop(tid)
	early(40 * roundsOf())
	hits := float64(read())
	expect.True(t, hits >= 0.6*ran && hits <= 1.3*ran, "%v hits in %v ms before Stop", hits, ran)
	totals, ok := s.Remove(tid)
	counted := float64(totals.Counted) / ms
	expect.True(t, ok && counted >= 0.7*ran && counted <= 1.1*ran, "%v of %v ms counted until Stop", counted,
		ran)

	must.Do(t, s.AddBoth(tid))
	early(10 * roundsOf())
	s.Remove(tid)
	must.Do(t, s.AddBoth(tid))
	expect.Equal(t, read(), 0, "hits of an earlier stay")
}

// With Wake, a sample makes a ring readable; without, only a ring that is half full.
func TestWake(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, wake := range []bool{false, true} {
		s := open(t, Config{PID: os.Getpid(), Kernel: true, Period: ms, Stack: StackCopy, Wake: wake})
		must.Do(t, s.AddBoth(uint32(unix.Gettid())))
		early(3 * roundsOf())
		var fds []unix.PollFd
		for _, fd := range s.Rings() {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		n, err := unix.Poll(fds, 0)
		must.Do(t, err)
		expect.True(t, n > 0 == wake, "Wake %v: %d rings are readable", wake, n)
	}
}

// Hits that a full ring has lost are counted once, also if the ring never has room for a record of them.
func TestLost(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := open(t, Config{PID: os.Getpid(), Kernel: true, Period: ms, Stack: perfevent.MaxStack})
	tid := uint32(unix.Gettid())
	must.Do(t, s.AddBoth(tid))
	before := threadTime()
	early(300 * roundsOf())
	due := uint64(threadTime()-before) / ms
	s.CountLost()
	lost := s.Lost()
	var system unix.Utsname
	must.Do(t, unix.Uname(&system))
	if lost == 0 && system.Release[0] < '6' && system.Release[1] == '.' {
		t.Skip("SKIPPED-CHECK: the kernel does not count lost hits: it is older than Linux 6.0")
	}
	hits := uint64(0)
	s.Read(func(*perfevent.Record) { hits++ })
	all := hits + lost
	expect.True(t, hits > 0 && all >= due*2/3 && all <= due*4/3, "%d hits and %d lost of %d", hits, lost, due)
	s.CountLost()
	s.Remove(tid)
	expect.True(t, s.Lost() >= lost && s.Lost() < lost+50, "%d lost, later %d", lost, s.Lost())
}
