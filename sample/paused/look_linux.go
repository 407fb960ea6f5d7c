package paused

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// Snapshot holds the threads of a process as they were read.
type Snapshot struct {
	Process *Process
	Stacks  []Stack           // by thread
	Stops   []live.Stop       // one for each requested thread
	Names   map[uint32]string // of threads, by TID

	threads []Thread // not walked yet
}

// LookAt stops every thread of a process in turn, for as long as it takes to copy its registers and its
// stack. tids selects threads; empty means all. The stacks have names and locks.
func LookAt(pid int, tids []int) (*Snapshot, error) { return lookAt(pid, tids, false) }

// LookAtTasks is LookAt for Process.Tasks.
func LookAtTasks(pid int, tids []int) (*Snapshot, error) { return lookAt(pid, tids, true) }

func lookAt(pid int, tids []int, keep bool) (*Snapshot, error) {
	if err := lookable(pid); err != nil {
		return nil, err
	}
	all, err := live.Threads(pid)
	if err != nil {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	for _, tid := range tids {
		if !slices.Contains(all, tid) {
			return nil, fmt.Errorf("process %d has no thread %d", pid, tid)
		}
	}
	if len(tids) > 0 {
		all = tids
	}
	slices.Sort(all)
	p, err := open(pid)
	if err != nil {
		return nil, err
	}
	l := &Snapshot{Process: p, Names: map[uint32]string{}}
	p.keep = keep
	live.StopEach(all, func(tid int, r *context.Registers, s live.Stood) {
		th := l.Process.Read(uint32(tid), r, s)
		l.Process.ReadCall(&th, s)
		l.threads = append(l.threads, th)
	}, func(s live.Stop) {
		l.Stops = append(l.Stops, s)
		l.walk()
	})
	if err := l.after(pid); err != nil {
		return nil, err
	}
	l.walk()
	l.Process.Locks(l.Stacks)
	slices.SortFunc(l.Stacks, func(a, b Stack) int { return int(a.TID) - int(b.TID) })
	return l, nil
}

// Open prepares to walk stacks that threads of a process have copied. It stops no thread. own is the PID that
// the process sees for itself, and opened is a time of its monotonic clock in nanoseconds. Open returns
// ErrOther if the process has another PID, and ErrYounger if the process started after opened.
func Open(pid int, own uint32, opened uint64) (*Process, error) {
	if err := lookable(pid); err != nil {
		return nil, err
	}
	if main, ok := live.NumbersOf(pid).Outer(own); !ok || main != uint32(pid) {
		return nil, ErrOther
	}
	if startedAfter(pid, opened) {
		return nil, ErrYounger
	}
	return open(pid)
}

// startedAfter reports whether a process certainly started after a time of its monotonic clock. The kernel
// gives the start by a clock that also counts how long the machine slept. Until the start, it slept for at
// most as long as until now. The clocks of another time namespace cannot be compared.
func startedAfter(pid int, monotonic uint64) bool {
	start := procstat.Read(pid).Field(procstat.Start)
	theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/time", pid))
	ours, _ := os.Readlink("/proc/self/ns/time")
	if theirs != ours || start == "" {
		return false
	}
	ticks, _ := strconv.ParseUint(start, 10, 64)
	var awake, all unix.Timespec
	err1 := unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	err2 := unix.ClockGettime(unix.CLOCK_BOOTTIME, &all)
	if err1 != nil || err2 != nil {
		return false
	}
	earliest := int64(ticks)*procstat.Tick - (all.Nano() - awake.Nano())
	return earliest > 0 && uint64(earliest) > monotonic
}

func open(pid int) (*Process, error) {
	maps, err := live.Maps(pid)
	mem, err2 := live.OpenProcess(pid)
	if errors.Join(err, err2) != nil {
		return nil, Denied(pid)
	}
	if len(maps) == 0 {
		return nil, fmt.Errorf("process %d has no memory: it has ended, or is a thread of the kernel", pid)
	}
	p := newPausedProcessOf(pid, context.Host(), mem, live.NewLoader(pid), maps)
	p.moves = true
	p.SetThreads(live.NumbersOf(pid))
	p.Reread = func() []live.Mapping {
		if now, err := live.Maps(pid); err == nil && len(now) > 0 {
			return now
		}
		return maps
	}
	p.verifySoon()
	return p, nil
}

// walk walks stacks while the code that they name is still there.
func (l *Snapshot) walk() {
	for i := range l.threads {
		l.Stacks = append(l.Stacks, l.Process.Walk(&l.threads[i]))
	}
	l.threads = nil
}

// after names the threads, and reads from the kernel the stacks of threads that could not be stopped.
func (l *Snapshot) after(pid int) error {
	var last error
	kernel := threads.OpenFiles(pid)
	defer kernel.Close(nil)
	for _, s := range l.Stops {
		l.Names[uint32(s.TID)] = kernel.Comm(uint32(s.TID))
		var e *live.StopError
		if !errors.As(s.Err, &e) {
			continue
		}
		switch last = s.Err; e.Why {
		case live.Denied:
			last = Denied(pid)
		case live.Asleep:
			l.asleep(&kernel, uint32(s.TID))
		}
	}
	if len(l.Stacks)+len(l.threads) == 0 {
		return last
	}
	return nil
}

// asleep adds a thread whose position the kernel reports: its stack does not change while it sleeps.
func (l *Snapshot) asleep(kernel *threads.Files, tid uint32) {
	w, sp, ip := kernel.Where(tid)
	if w != threads.Blocked {
		return
	}
	r := walk.StoppedAt(context.Host(), sp, ip)
	th := l.Process.Read(tid, &r, live.Stood{Call: -1})
	th.Partial, th.block = true, ForInput // most such waits are for devices and file systems
	l.threads = append(l.threads, th)
}

// Lookable returns why a process cannot be read, or nil if no obstacle is found.
func Lookable(pid int) error {
	if err := lookable(pid); err != nil {
		return err
	}
	if _, err := live.Maps(pid); err != nil { // OpenProcess may succeed: it reads nothing
		return Denied(pid)
	}
	var refused error
	live.StopEach([]int{pid}, func(int, *context.Registers, live.Stood) {},
		func(s live.Stop) { refused = s.Err })
	var e *live.StopError
	switch {
	case !errors.As(refused, &e):
		return nil
	case e.Why == live.Denied:
		return Denied(pid)
	case e.Why == live.Traced, e.Why == live.Untraced:
		return e
	}
	return nil
}

// lookable is Lookable without stopping a thread.
func lookable(pid int) error {
	switch status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); {
	case err != nil:
		return fmt.Errorf("there is no process %d: find its PID with ps", pid)
	case pid == os.Getpid():
		return fmt.Errorf("process %d is seedwalk itself", pid)
	case bytes.Contains(status, []byte("\nState:\tZ")) && soleThread(pid):
		return fmt.Errorf("process %d has ended (zombie): it has no stacks", pid)
	case bytes.Contains(status, []byte("\nState:\tZ")):
		return fmt.Errorf("the main thread of process %d has ended: seedwalk cannot read the memory of such a process", pid)
	case procstat.Read(pid).Kernel():
		return fmt.Errorf("process %d is a thread of the kernel: it has no stacks that seedwalk can show", pid)
	}
	return Foreign(pid)
}

// Foreign returns an error if a process runs on a machine whose registers are not known, nil if the machine
// is unknown.
func Foreign(pid int) error {
	f, err := program.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || f.Err != nil || live.Emulated(pid) {
		return nil // other checks report why; the machine of an emulated program is not known
	}
	if f.Bits != 64 || f.Arch != runtime.GOARCH {
		return fmt.Errorf("process %d is for another architecture (%s): use a seedwalk for that architecture",
			pid, f.Machine)
	}
	return nil
}

// soleThread reports whether the process has one thread. A process whose first thread has ended may have
// others.
func soleThread(pid int) bool {
	all, err := live.Threads(pid)
	return err != nil || len(all) == 1
}

// Denied returns why a process may not be read.
func Denied(pid int) error {
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) != nil {
		return fmt.Errorf("there is no process %d", pid)
	}
	if uid := os.Geteuid(); uid != 0 && int(st.Uid) != uid {
		return fmt.Errorf("process %d belongs to user %d, and seedwalk runs as user %d: run it as that user or as root",
			pid, st.Uid, uid)
	}
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if s := strings.TrimSpace(string(scope)); s != "" && s != "0" {
		return fmt.Errorf("process %d cannot be read, because kernel.yama.ptrace_scope is %s: run seedwalk as root, or sysctl kernel.yama.ptrace_scope=0", pid, s)
	}
	return fmt.Errorf("process %d cannot be read: seedwalk needs CAP_SYS_PTRACE for it (docker run --cap-add SYS_PTRACE), and a seccomp filter that allows ptrace", pid)
}
