package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

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
	p, err := paused.Open(f.pid, k.PID)
	if errors.Is(err, paused.ErrOther) {
		return nil, f.foreign(k, f.pid)
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

// copiesOfCore walks the copies with the memory of a core.
func (f *stackFlags) copiesOfCore(c *dump.Core, m *dump.Modules, p *paused.Process) (*stackView, error) {
	k, err := readCopies(f.copies)
	if err != nil {
		return nil, err
	}
	if int(k.PID) != int(c.PID) || k.Arch != c.Arch {
		return nil, f.foreign(k, int(c.PID))
	}
	p.Verify()
	v := newStackView("core", int(c.PID), c.Name)
	f.addCopies(v, k, p)
	v.damaged(f.core, c.Problems)
	v.lacking(m.Problems())
	v.finish(p)
	return v, nil
}

func (f *stackFlags) foreign(k *probe.Kept, pid int) error {
	return fmt.Errorf("%s: offset %d: the copies are of process %d, not %d: name that process or its core",
		f.copies, probe.KeptPID, k.PID, pid)
}

// readCopies reads a file of copies. A longer file is not one.
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
	k.Read(func(r *probe.Record) {
		if len(f.tids) > 0 && !slices.Contains(f.tids, int(r.TID)) {
			return
		}
		c := sampler.CaptureOf(k.Arch, r)
		s := p.WalkCopy(&c)
		v.add(p, &s, "", 0)
		v.Threads[len(v.Threads)-1].Copy = &stackCopy{r.Since, r.Time}
	})
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
