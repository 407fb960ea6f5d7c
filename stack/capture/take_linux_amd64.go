package capture

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Limits of a capture.
const (
	maxFrames    = 4096
	maxProcesses = 256 // polled in one round
	redZone      = 128 // bytes below SP that a leaf function may use (System V ABI)
)

// Taker takes stacks of running processes. It is not safe for concurrent use.
type Taker struct {
	File       File
	Max        int // at most this many stacks
	StackBytes int // at most this many bytes of each stack
	Refused    error

	processes map[int]*process
	last      map[int]context.AMD64 // registers of each thread at its last copy
}

// NewTaker returns a taker of at most stacks stacks, size bytes each.
func NewTaker(stacks, size int) *Taker {
	return &Taker{Max: stacks, StackBytes: size, processes: map[int]*process{}, last: map[int]context.AMD64{}}
}

// Full reports whether the limit of stacks is reached.
func (t *Taker) Full() bool { return len(t.File.Stacks) >= t.Max }

// process is a process whose stacks are captured.
type process struct {
	mem     *live.Process
	loader  *live.Loader
	maps    []live.Mapping
	set     int
	strings memory.Range // arguments and environment
}

// Round captures the threads of a process and of its children. It stops one thread at a
// time while it copies the registers and the stack. It skips threads that have not moved
// since their last copy.
func (t *Taker) Round(pid int) {
	for _, p := range family(pid) {
		if !t.Full() {
			t.capture(p, p != pid)
		}
	}
}

// capture captures the threads of one process. A child may have ended.
func (t *Taker) capture(pid int, child bool) {
	p, err := t.process(pid)
	if err != nil {
		if !child || !errors.Is(err, unix.ESRCH) && !procstat.Read(pid).Ended() {
			t.Refused = err
		}
		return
	}
	threads, err := live.Threads(pid)
	if err != nil {
		return // it has ended
	}
	var taken []int
	first := len(t.File.Stacks)
	live.StopEach(threads, func(tid int, r *context.Registers, s live.Stood) {
		if t.Full() || r.Arch != context.ArchAMD64 || t.last[tid] == r.AMD64 {
			return
		}
		t.last[tid] = r.AMD64
		taken = append(taken, tid)
		run := p.copy(r.SP(), s.Base, t.StackBytes)
		if len(run.Data) > 0 {
			t.File.Stacks = append(t.File.Stacks,
				Stack{Set: p.set, Limit: maxFrames, Regs: r.AMD64, Runs: []memory.Run{run}})
		}
	}, func(s live.Stop) {
		if e, ok := s.Err.(*live.StopError); ok && e.Why != live.Gone {
			t.Refused = e
		}
	})
	// A program that has just started may have loaded the current module after its
	// mappings were read, and may then wait there. Such a stack is captured again. An exec moves the
	// arguments and the environment, so they are removed from these copies once more.
	if now, err := live.Maps(pid); err != nil || !slices.Equal(p.maps, now) {
		for _, tid := range taken {
			delete(t.last, tid)
		}
		for i := range t.File.Stacks[first:] {
			blank(t.File.Stacks[first+i].Runs[0], commandLine(pid))
		}
	}
}

// process returns the process pid with its current images.
func (t *Taker) process(pid int) (*process, error) {
	maps, err := live.Maps(pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	if err != nil {
		return nil, fmt.Errorf("process %d may not be read: %w", pid, err)
	}
	p := t.processes[pid]
	if p == nil {
		mem, err := live.OpenProcess(pid)
		if err != nil {
			return nil, fmt.Errorf("process %d may not be read: %w", pid, err)
		}
		p = &process{mem: mem, loader: live.NewLoader(pid)}
		t.processes[pid] = p
	}
	if p.maps == nil || !slices.Equal(p.maps, maps) {
		t.renew(pid, p, maps)
	}
	return p, nil
}

// renew makes a new set of images if the images of the process have changed.
func (t *Taker) renew(pid int, p *process, maps []live.Mapping) {
	p.maps, p.strings = maps, commandLine(pid)
	set := images(p.loader.Table(maps))
	if n := len(t.File.Sets); n > 0 && slices.Equal(t.File.Sets[n-1], set) {
		p.set = n - 1
		return
	}
	p.set = len(t.File.Sets)
	t.File.Sets = append(t.File.Sets, set)
}

func images(table *module.Table) (out []Image) {
	for i := range table.Len() {
		m := table.At(i)
		out = append(out, Image{Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path, BuildID: m.BuildID})
	}
	return out
}

// copy reads the stack from the red zone below sp up to base, or to the end of the mapping
// if base is unknown.
func (p *process) copy(sp, base uint64, most int) memory.Run {
	i, found := slices.BinarySearchFunc(p.maps, sp, func(m live.Mapping, at uint64) int {
		switch {
		case m.End <= at:
			return -1
		case m.Start > at:
			return 1
		}
		return 0
	})
	if !found {
		return memory.Run{}
	}
	from, end := max(sp-redZone, p.maps[i].Start), p.maps[i].End
	if base > sp && base < end {
		end = base
	}
	b := make([]byte, min(end-from, uint64(most)))
	run := memory.Run{Addr: from, Data: b[:p.mem.ReadSome(b, from)]}
	blank(run, p.strings)
	return run
}

// blank overwrites the part of a run that lies in r.
func blank(run memory.Run, r memory.Range) {
	from, to := max(r.Start, run.Addr), min(r.End, run.End())
	if from < to {
		clear(run.Data[from-run.Addr : to-run.Addr])
	}
}

// commandLine returns the addresses of a process's arguments and environment.
func commandLine(pid int) memory.Range {
	stat := procstat.Read(pid)
	return memory.Range{Start: stat.Number(procstat.ArgStart), End: stat.Number(procstat.EnvEnd)}
}

// family returns a process and its descendants.
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all) && len(all) < maxProcesses; i++ {
		threads, _ := live.Threads(all[i])
		for _, tid := range threads {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", all[i], tid))
			for _, f := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(f); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	return all[:min(len(all), maxProcesses)]
}

// Ended reports whether a process has ended; if it is our child, Wait can
// still collect its status.
func Ended(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err == nil {
		return info.Signo != 0
	}
	return unix.Kill(pid, 0) == unix.ESRCH
}
