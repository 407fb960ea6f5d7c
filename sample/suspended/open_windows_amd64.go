package suspended

import (
	"time"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
)

// State is how far a process has come to where it can be sampled from outside.
type State uint8

const (
	NoRuntime State = iota // it has none, or not yet
	Ready
	Refused // its runtime does not publish what is needed
)

// Prospect is a process that may become one of .NET.
type Prospect struct {
	mem   *live.Process
	t     *target.Process
	mark  live.LoaderMark
	doubt time.Time // when it was first read as one to be refused
}

// OpenProspect opens a process to be looked at.
func OpenProspect(pid int) (*Prospect, error) {
	mem, err := live.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	return &Prospect{mem: mem, t: newWindowsTarget(pid, mem, mem.Images())}, nil
}

// Close closes what OpenProspect opened.
func (p *Prospect) Close() { p.mem.Close() }

// Ended reports whether the process has ended.
func (p *Prospect) Ended() bool { return p.mem.Ended() }

// Doubted reports whether the process holds a runtime that may have to be refused.
func (p *Prospect) Doubted() bool { return !p.doubt.IsZero() }

// Runtime is the path of the module that holds the runtime, "" if none is known that
// can be sampled.
func (p *Prospect) Runtime() string { return p.t.Path }

// grace is how long a process may be read as one that cannot be sampled: while it
// starts, its images are not whole yet.
const grace = 3 * time.Second

// Look looks at the process as it is now; why says why it is refused.
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
