package startup

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// Sampler samples a process through the kernel's rings. A .NET process runs for tens of milliseconds before
// its runtime loads the probe.
type Sampler struct {
	pid       int
	Rings     *cpuring.Sampler
	SinceBoot int64 // added to a record's time to get Unix time, nanoseconds

	stop, stopped chan struct{} // of collect
	hits          []perfevent.Record
	bytes         int
	full, Closed  bool // the bound is reached; the rings are closed
}

const (
	// Period is the CPU time between two samples, nanoseconds: short enough that a short program gets
	// some.
	Period = 1000000
	// collectEvery is the time between two reads of the rings. A ring of 512 KB has room for seven samples.
	collectEvery = 2 * time.Millisecond
	// startLimit is how long to wait for an engine: the command may not be a .NET program.
	startLimit = 10 * time.Second
	// Bounds of the copied samples.
	maxHits, maxBytes = 1 << 14, 16 << 20
)

// Start starts cmd and samples it from its first instruction: ptrace stops the process at exec until the
// rings are open. Where that is not permitted, the process runs at once.
func (s *Starting) Start(cmd *exec.Cmd) error {
	if !traceable(cmd.Path) || cmd.SysProcAttr != nil {
		return s.startLate(cmd)
	}
	runtime.LockOSThread() // only the thread that starts the process may let it go
	defer runtime.UnlockOSThread()
	traced := *cmd
	traced.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if traced.Start() != nil {
		return s.startLate(cmd)
	}
	*cmd = traced
	pid := cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	s.Begin(pid)
	syscall.PtraceDetach(pid) // fails only if the process was killed meanwhile
	return nil
}

// startLate starts cmd and then opens the rings: the first milliseconds may be missing.
func (s *Starting) startLate(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	s.Begin(cmd.Process.Pid)
	return nil
}

// Wait waits for cmd to end. It reads the process's clock before the kernel removes the process.
func (s *Starting) Wait(cmd *exec.Cmd) error {
	pid := cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	if nanos, ok := procstat.CPUTime(pid); ok {
		s.last.Store(&ended{int64(pid), nanos})
	}
	return cmd.Wait()
}

// traceable reports whether a traced process may run the file with all its rights: execve(2) ignores
// set-user-ID bits and capabilities of a traced process.
func traceable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return false
	}
	_, err = unix.Getxattr(path, "security.capability", nil)
	return err != nil
}

func newStartup(pid int) *Sampler {
	rings, err := cpuring.New(cpuring.Config{PID: pid, Period: Period, Stack: cpuring.StackCopy})
	if err != nil {
		return nil
	}
	s := &Sampler{pid: pid, Rings: rings, SinceBoot: time.Now().UnixNano() - int64(perfevent.Now()),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.collect()
	return s
}

// collect copies samples until it is stopped. It ends the sampling if the bound is reached or no engine
// comes within startLimit.
func (s *Sampler) collect() {
	defer close(s.stopped)
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for began := time.Now(); !s.full && time.Since(began) < startLimit; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.Rings.Read(s.keep)
		}
	}
	s.Rings.Close()
	s.Closed = true
}

// keep copies a sample, or sets full if the bound is reached.
func (s *Sampler) keep(r *perfevent.Record) {
	if s.bytes+len(r.Stack) > maxBytes || len(s.hits) >= maxHits {
		s.full = true
		return
	}
	k := *r
	k.Regs, k.Stack = bytes.Clone(r.Regs), bytes.Clone(r.Stack)
	s.hits, s.bytes = append(s.hits, k), s.bytes+len(k.Stack)
}

// HandOver stops collect, passes all copied samples to take, and leaves the rings to the caller unless
// Closed is set. Only the first call does anything.
func (s *Sampler) HandOver(take func(*perfevent.Record)) {
	if s.stop == nil {
		return
	}
	close(s.stop)
	<-s.stopped
	s.stop = nil
	for i := range s.hits {
		take(&s.hits[i])
	}
	s.hits = nil
}

// End ends the sampling.
func (s *Sampler) End() {
	s.HandOver(func(*perfevent.Record) {})
	if !s.Closed {
		s.Rings.Close()
	}
}
