package perfevent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// nobody is a user without privileges.
const nobody = 65534

// refused skips a test if the kernel does not permit events.
func refused(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrRefused) {
		t.Skip("SKIPPED-CHECK: the kernel permits no perf events here, so they were not tried: ", err)
	}
	must.Do(t, err)
}

// worker runs functions on a thread of its own, which is locked to one CPU, and waits for them.
type worker struct {
	tid  int
	work chan func()
	done chan bool // closed at the end
}

func newWorker(t *testing.T) *worker {
	w := &worker{work: make(chan func()), done: make(chan bool)}
	ready := make(chan int)
	go w.serve(ready)
	w.tid = <-ready
	return w
}

// serve runs on a thread that ends with it, so not on the first one, which never ends.
func (w *worker) serve(ready chan<- int) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		other := make(chan int)
		go w.serve(other)
		ready <- <-other
		runtime.UnlockOSThread()
		return
	}
	ready <- unix.Gettid()
	for f := range w.work {
		f()
		w.done <- true
	}
	close(w.done)
}

func (w *worker) do(f func()) { w.work <- f; <-w.done }

// burn uses d of the thread's CPU time.
func burn(d time.Duration) time.Duration {
	began := threadTime()
	for threadTime()-began < d {
	}
	return threadTime() - began
}

func threadTime() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

func TestRingOfSamples(t *testing.T) {
	w := newWorker(t)
	defer close(w.work)
	var rings []*Ring
	var events []*Event
	for _, cpu := range CPUs() {
		e, r := openShared(t, w.tid, cpu)
		events, rings = append(events, e), append(rings, r)
	}
	var used time.Duration
	w.do(func() { used = burn(50 * time.Millisecond) })
	var counted uint64
	hits := 0
	for i, e := range events {
		e.Disable()
		n := must.Get(e.Count())(t)
		counted += n
		rings[i].Read(func(b []byte) { hits += checkSample(t, w.tid, e.Layout(), b) })
	}
	if counted < uint64(used)*99/100 || hits == 0 { // the two clocks are not the same
		t.Errorf("counted %d ns of %d, %d samples", counted, used, hits)
	}
}

// openShared opens and enables an event of tid that uses the ring of another thread's event.
func openShared(t *testing.T, tid, cpu int) (*Event, *Ring) {
	t.Helper()
	owner, err := OpenClock(os.Getpid(), cpu, Attr{Period: 1e6, Regs: true, Stack: 4096})
	refused(t, err)
	t.Cleanup(func() { owner.Close() })
	r := must.Get(MapRing(owner, 1<<18, 1<<14))(t)
	t.Cleanup(func() { r.Close() })
	e := must.Get(OpenClock(tid, cpu, Attr{Period: 1e6, Regs: true, Stack: 4096}))(t)
	t.Cleanup(func() { e.Close() })
	must.Do(t, errors.Join(owner.Share(e), e.Enable()))
	return e, r
}

// checkSample returns 1 for a good sample of tid.
func checkSample(t *testing.T, tid int, l Layout, b []byte) int {
	var r Record
	if !l.Parse(b, &r) || r.Type != Sample {
		return 0
	}
	regs, ok := r.Registers(context.Host())
	if !ok || r.TID != uint32(tid) || r.PID != uint32(os.Getpid()) || regs.SP() == 0 || len(r.Stack) == 0 ||
		!r.Kernel && regs.IP() != r.IP {
		t.Errorf("%+v: %x", r, regs)
		return 0
	}
	return 1
}

// The signal arrives in the thread itself, without a ring: the test blocks it there and finds it pending. The
// count is available after the thread has ended.
func TestSignalAndCountOfEnded(t *testing.T) {
	w := newWorker(t)
	e, err := OpenClock(w.tid, -1, Attr{Period: 1e6})
	refused(t, err)
	defer e.Close()
	expect.True(t, e.Signal(w.tid, unix.SIGIO) != nil, "SIGIO was accepted")
	must.Do(t, e.Signal(w.tid, unix.SIGURG))
	pending := func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", w.tid))
		_, rest, _ := strings.Cut(string(b), "SigPnd:\t")
		var mask uint64
		fmt.Sscanf(rest, "%x", &mask)
		return mask>>(unix.SIGURG-1)&1 == 1
	}
	var before, after bool
	var used time.Duration
	w.do(func() {
		set := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGURG - 1)}}
		unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
		for until := threadTime() + 20*time.Millisecond; pending() && threadTime() < until; {
		}
		before = pending() // signals of Go's runtime itself
		e.Enable()
		used = burn(20 * time.Millisecond)
		after = pending()
	})
	if before {
		t.Skip("SKIPPED-CHECK: the Go runtime had sent this thread SIGURG already, so whose signal is pending is not known")
	}
	expect.True(t, after, "no signal is pending in the thread")
	close(w.work)
	<-w.done
	for range 1000 { // the thread ends soon
		if unix.Tgkill(os.Getpid(), w.tid, 0) != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	n, err := e.Count()
	expect.True(t, err == nil && n >= uint64(used), "after the end: %d ns of %d, %v", n, used, err)
	_, err = OpenClock(w.tid, -1, Attr{Period: 1e6})
	expect.True(t, errors.Is(err, ErrGone), "of an ended thread: %v", err)
}

// watchesThreadsOnly reports whether new processes inherit no events: Linux 5.13 or later.
func watchesThreadsOnly() bool {
	fd, err := openAttr(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | inheritThread |
			unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}, os.Getpid(), -1)
	unix.Close(fd)
	return err == nil
}

// A watch reports new, renamed, and ended threads through a descriptor that poll can wait for. It reports the
// start of a new process, and not its end.
func TestWatch(t *testing.T) {
	watch, err := OpenWatch(CPUs(), ownThreads()...)
	refused(t, err)
	defer watch.Close()
	var fds []unix.PollFd
	for _, fd := range watch.FDs() {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	seen := map[Type]map[uint32]bool{Fork: {}, Comm: {}, Exit: {}}
	whole, named := false, false
	read := func() {
		watch.Read(func(r *Record) {
			seen[r.Type][r.TID] = true
			named = named || r.Type == Comm && string(r.Name) == "renamed"
			whole = whole || r.Type == Exit && seen[Fork][r.TID]
		})
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	must.Do(t, cmd.Run())
	n, err := unix.Poll(fds, 10000)
	must.True(t, n != 0, "nothing to read: %v", err)
	for began := time.Now(); !whole && time.Since(began) < time.Minute; read() {
		var ready sync.WaitGroup
		ready.Add(50)
		for range 50 {
			go func() {
				runtime.LockOSThread() // the thread ends with the goroutine
				name := [16]byte{'r', 'e', 'n', 'a', 'm', 'e', 'd'}
				unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0)
				ready.Done()
				ready.Wait()
			}()
		}
		time.Sleep(10 * time.Millisecond)
	}
	expect.True(t, named, "the new name of a thread was not reported")
	child := uint32(cmd.Process.Pid)
	if !whole || !seen[Fork][child] || seen[Exit][child] && watchesThreadsOnly() {
		t.Errorf("a thread: %v, process %d: start %v, end %v", whole, child, seen[Fork][child],
			seen[Exit][child])
	}
}

// A silent watch reports threads too, but does not make the descriptors readable. It may be changed back.
func TestSilentWatch(t *testing.T) {
	watch, err := OpenWatch(CPUs(), ownThreads()...)
	refused(t, err)
	defer watch.Close()
	for _, silent := range []bool{true, false, true} {
		is := watch.SetSilent(silent, func(*Record) {}, ownThreads()...)
		must.Equal(t, is, silent, "the watch is silent")
		watch.Read(func(*Record) {})
		var fds []unix.PollFd // also of the silent rings, which would interrupt the processor too
		for _, e := range slices.Concat(watch.waking.owners, watch.silent.owners) {
			fds = append(fds, unix.PollFd{Fd: int32(e.fd), Events: unix.POLLIN})
		}
		unix.Poll(fds, 0) // takes what was before
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		must.Do(t, cmd.Run())
		n, _ := unix.Poll(fds, 0)
		expect.Equal(t, n == 0, silent, "%d descriptors are readable", n)
		reported := false
		watch.Read(func(r *Record) { reported = reported || int(r.TID) == cmd.Process.Pid })
		expect.True(t, reported, "silent %v: the start of a process was not reported", silent)
	}
	if !watch.SetSilent(false, func(*Record) {}, 1<<30) || len(watch.events) == 0 {
		t.Error("a watch of no thread replaces another one")
	}
}

// A thread whose birth was not read yet when the watch changes is watched, too.
func TestSilentWatchOfNewThread(t *testing.T) {
	before := ownThreads()
	watch, err := OpenWatch(CPUs(), before...)
	refused(t, err)
	defer watch.Close()
	born, done, tid := make(chan int), make(chan error), before[0]
	var start chan bool
	for slices.Contains(before, tid) { // until a goroutine gets a thread that is new
		start = make(chan bool)
		defer close(start)
		go func(start chan bool) {
			runtime.LockOSThread()
			born <- unix.Gettid()
			if <-start {
				done <- exec.Command("/proc/self/exe", "-test.run=^$").Run()
			}
		}(start)
		tid = <-born
	}
	must.True(t, watch.SetSilent(true, func(*Record) {}, before...), "not silent")
	start <- true
	must.Do(t, <-done)
	reported := false
	watch.Read(func(r *Record) { reported = reported || r.Type == Fork && int(r.Parent) == tid })
	expect.True(t, reported, "the process that the new thread started was not reported")
}

// The period can be changed. A program started by this one is counted from its exec on.
func TestPeriodAndExec(t *testing.T) {
	w := newWorker(t)
	defer close(w.work)
	e, err := OpenClock(w.tid, -1, Attr{Period: 1e9, ExcludeKernel: true})
	refused(t, err)
	defer e.Close()
	expect.True(t, e.ExcludesKernel(), "does not say that it excludes the kernel")
	expect.Equal(t, e.SetPeriod(1e6), nil)
	expect.True(t, e.SetPeriod(0) != nil, "a period of 0 was accepted")
	_, err = OpenClock(w.tid, 1<<20, Attr{Period: 1e6})
	expect.True(t, err != nil, "an event of a CPU that is not there")
}

// All of this works for a user without privileges.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root can become another user, and this one is none: the other tests ran without privileges")
	}
	cmd := exec.Command("/proc/self/exe", "-test.v",
		"-test.run=^(TestRingOfSamples|TestSignalAndCountOfEnded|TestWatch|TestPeriodAndExec)$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok") && !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "SKIPPED-CHECK") {
		t.Skip("SKIPPED-CHECK: the kernel permits user nobody no perf events, so they were not tried: ",
			string(out))
	}
}

// A readable descriptor wakes a Wait, in short and long waits in any order; so does the start of a thread
// that a Watch reports.
func TestWait(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	defer w.Close()
	wait := must.Get(NewWait(int(r.Fd())))(t)
	defer wait.Close()
	one := make([]byte, 1)
	for i, long := range []bool{true, false, false, true, true, false} {
		time.AfterFunc(20*time.Millisecond, func() { w.Write([]byte{1}) })
		if began := time.Now(); long {
			wait.Long(nil)
		} else {
			for wait.Short(time.Minute); time.Since(began) < time.Millisecond; {
				wait.Short(time.Minute)
			}
		}
		n, err := r.Read(one)
		must.True(t, n == 1 && err == nil, "wait %d: %d bytes, %v", i, n, err)
	}
	for range 2 { // the second one finds the descriptor in the poller
		w.Write(one)
		time.Sleep(20 * time.Millisecond) // the poller sees it before the wait begins
		wait.Long(nil)
		r.Read(one)
	}
}

// After Quiet, a readable descriptor does not make the epoll readable, which would wake Go's poller. Long
// returns for it.
func TestQuiet(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	defer w.Close()
	wait := must.Get(NewWait(int(r.Fd())))(t)
	defer wait.Close()
	must.Get(w.Write([]byte("1")))(t)
	wait.Long(nil)
	ready := func() int {
		n := must.Get(unix.Poll([]unix.PollFd{{Fd: int32(wait.file.Fd()), Events: unix.POLLIN}}, 0))(t)
		return n
	}
	must.Equal(t, ready(), 1, "the epoll is not readable")
	wait.Quiet()
	expect.Equal(t, ready(), 0, "the epoll is readable after Quiet")
	wait.Long(nil)
}

func ownThreads() (tids []int) {
	entries, _ := os.ReadDir("/proc/self/task")
	for _, e := range entries {
		tid, _ := strconv.Atoi(e.Name())
		tids = append(tids, tid)
	}
	return tids
}

// birthWait returns a watch of this process, and a wait for it that ends after 40 s in any case.
func birthWait(t *testing.T) (*Watch, *Wait) {
	t.Helper()
	watch, err := OpenWatch(CPUs(), ownThreads()...)
	if err != nil {
		t.Skipf("SKIPPED-CHECK: the kernel gives no events: %v", err)
	}
	t.Cleanup(watch.Close)
	r, w, err := os.Pipe()
	must.Do(t, err)
	t.Cleanup(func() { r.Close() })
	ends := time.AfterFunc(40*time.Second, func() { w.Close() }) // ends a wait that has missed an event
	t.Cleanup(func() { ends.Stop(); w.Close() })
	wait := must.Get(NewWait(append(watch.FDs(), int(r.Fd()))...))(t)
	t.Cleanup(func() { wait.Close() })
	return watch, wait
}

// A start that was reported before Long, and whose report another poll has taken, does not make Long wait.
func TestLongAfterBirth(t *testing.T) {
	watch, wait := birthWait(t)
	must.Do(t, exec.Command("true").Run())
	for _, fd := range watch.FDs() {
		must.Get(unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0))(t)
	}
	began := time.Now()
	wait.Long(watch.Waiting)
	expect.True(t, time.Since(began) <= 30*time.Second, "Long has waited")
}

func TestWaitForBirths(t *testing.T) {
	watch, wait := birthWait(t)
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
				wait.Long(watch.Waiting)
			} else {
				wait.Short(time.Minute)
			}
		}
		must.True(t, births != 0, "wait %d has missed the start of a program", i)
	}
}
