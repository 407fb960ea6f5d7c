package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// stackCopy marks a stack that a thread has copied.
type stackCopy struct {
	Tag    uint64 `json:"tag"`
	TimeNs uint64 `json:"time_ns"` // by the monotonic clock of the machine
}

// copiesOfProcess walks the copies with the memory of the running process.
func (f *stackFlags) copiesOfProcess() (*stackView, error) {
	k, err := readCopies(f.copies)
	if err != nil {
		return nil, err
	}
	p, err := paused.Open(f.pid, k.PID, k.Opened)
	switch {
	case errors.Is(err, paused.ErrOther):
		err = f.otherPID(k, f.pid)
	case errors.Is(err, paused.ErrYounger):
		err = f.other(probe.KeptOpened, "process %d started after the copies of process %d", f.pid, k.PID)
	case err == nil:
		err = f.match(k, context.Host(), p)
	}
	if err != nil {
		return nil, err
	}
	v := newStackView("process", f.pid, "")
	f.addCopies(v, k, p)
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", f.pid)); err != nil {
		v.Problems = append(v.Problems, fmt.Sprintf("process %d ended before all copies were walked", f.pid))
	}
	v.finish(p)
	return v, nil
}

// copiesOfCore walks the copies with the memory of a core. A core that was written outside of the process's
// container has another number than the copies. The address of the first thread's stack is the better proof.
func (f *stackFlags) copiesOfCore(v *stackView, c *dump.Core, p *paused.Process) error {
	k, err := readCopies(f.copies)
	if err != nil {
		return err
	}
	if err := f.match(k, c.Arch, p); err != nil {
		return err
	}
	if k.Stack == 0 && k.PID != c.PID {
		return f.otherPID(k, int(c.PID))
	}
	p.Verify()
	f.addCopies(v, k, p)
	return nil
}

// match returns an error if the copies are of another process than p, whose architecture is a.
func (f *stackFlags) match(k *probe.Kept, a context.Arch, p *paused.Process) error {
	switch {
	case k.Arch != a:
		return f.other(probe.KeptArch, "the copies are of %s, the process is of %s", k.Arch, a)
	case k.Stack != 0 && !p.Maps(k.Stack):
		return f.other(probe.KeptStack, "the copies are of a process with a stack at %#x, where this one has nothing",
			k.Stack)
	}
	return nil
}

func (f *stackFlags) otherPID(k *probe.Kept, pid int) error {
	return f.other(probe.KeptPID, "the copies are of process %d, not %d", k.PID, pid)
}

// other returns the error that the copies are of another process, as the header says at this offset.
func (f *stackFlags) other(offset uintptr, format string, args ...any) error {
	return fmt.Errorf("%s: offset %d: %s: name the process of the copies, or its core", f.copies, offset,
		fmt.Sprintf(format, args...))
}

// readCopies reads a file of copies. It reads one byte more than the file can have, so that ReadKept sees a
// longer file.
func readCopies(path string) (*probe.Kept, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, probe.FileSize+1))
	if err != nil {
		return nil, err
	}
	k, err := probe.ReadKept(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// addCopies adds the stacks of the wanted threads, and a problem for each damaged part of the file.
func (f *stackFlags) addCopies(v *stackView, k *probe.Kept, p *paused.Process) {
	const most = 10 // damaged parts that are listed
	v.Copies, v.Dropped = true, k.Dropped
	lacking := slices.Clone(f.tids)
	k.Read(func(r *probe.Record) {
		if tid, ok := p.Outer(r.TID); ok { // an ended thread has its own number only
			r.TID = tid
		}
		if len(f.tids) > 0 && !slices.Contains(f.tids, int(r.TID)) {
			return
		}
		lacking = slices.DeleteFunc(lacking, func(tid int) bool { return tid == int(r.TID) })
		c := sampler.CaptureOf(k.Arch, "linux", r) // the client library of other systems keeps none
		s := p.WalkCopy(&c)
		v.add(p, &s, "", 0)
		v.Threads[len(v.Threads)-1].Copy = &stackCopy{r.Since, r.Time}
	})
	for _, tid := range lacking {
		v.Problems = append(v.Problems, fmt.Sprintf("%s: no copy of thread %d", f.copies, tid))
	}
	for i := range k.Damage {
		if i == most {
			v.Problems = append(v.Problems,
				fmt.Sprintf("%s: %d more damaged parts", f.copies, len(k.Damage)-most))
			break
		}
		v.Problems = append(v.Problems, fmt.Sprintf("%s: %v", f.copies, &k.Damage[i]))
	}
	if k.Dropped > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("%s was full: %d more copies found no room", f.copies,
			k.Dropped))
	}
}
