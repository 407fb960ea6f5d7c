package suspended

import (
	"time"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
)

// State is whether a process can be sampled from outside.
type State uint8

const (
	NoRuntime State = iota // none, or not yet
	Ready
	Refused // its runtime does not publish the needed data
)

// Prospect is a process that may load a .NET runtime.
type Prospect struct {
	mem   *live.Process
	t     *target.Process
	mark  live.LoaderMark
	doubt time.Time // when it first looked like one to refuse
}

// OpenProspect opens a process for checks.
func OpenProspect(pid int) (*Prospect, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	return &Prospect{mem: mem, t: newWindowsTarget(pid, mem, mem.Images())}, nil
}

// Close closes the process.
func (p *Prospect) Close() { p.mem.Close() }

// Ended reports whether the process has ended.
func (p *Prospect) Ended() bool { return p.mem.Ended() }

// Doubted reports whether the process has a runtime that may have to be refused.
func (p *Prospect) Doubted() bool { return !p.doubt.IsZero() }

// Runtime returns the path of the module with the runtime, "" if no usable runtime is known.
func (p *Prospect) Runtime() string { return p.t.Path }

// grace is how long a process may look unusable: while it starts, its images are incomplete.
const grace = 3 * time.Second

// Look checks the process now; why is the reason for a refusal.
func (p *Prospect) Look() (s State, why string) {
	mark, ok := p.mem.Mark()
	switch {
	case !ok:
		return NoRuntime, ""
	case mark != p.mark && p.t.Refresh(0):
		p.mark = mark
	case p.t.Table != nil && !p.doubt.IsZero():
		p.t.Find()
	}
	switch {
	case p.t.Tables != nil:
		return Ready, ""
	case p.t.Table == nil:
		return NoRuntime, ""
	case p.t.Why != "":
		why = p.t.Why
	case p.t.HasCLR():
		why = "its runtime does not publish its structures (.NET 10 and later do)"
	default:
		return NoRuntime, ""
	}
	if p.doubt.IsZero() {
		p.doubt = time.Now()
	}
	if time.Since(p.doubt) < grace {
		return NoRuntime, ""
	}
	return Refused, why
}
