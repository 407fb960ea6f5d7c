package agent

import (
	"os"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Contracts finds the runtime's own code tables and passes them to a merger once they are
// verified. It runs while nothing is suspended.
type Contracts struct {
	Memory func() (memory.Reader, error) // reads the target's memory
	Note   func(text string)             // receives the reason why there are no tables; may be nil

	reader memory.Reader
	tables *contract.Tables
	steps  *managed.Tables // over tables
	tried  map[uint32]bool
	inUse  bool // the merger uses the tables
	names  interface {
		Desc(desc uint64) (naming.Method, bool)
	}
}

// instance returns the type arguments of a method. The method's FunctionID is the
// runtime's MethodDesc; the verification of the tables has confirmed this.
func (c *Contracts) instance(images *naming.Images, f clr.FunctionID, m *demangle.MethodName) {
	if !c.inUse || images == nil {
		return
	}
	if c.names == nil {
		names, err := naming.Over(images, c.tables.Descriptor())
		if err != nil {
			return
		}
		c.names = names
	}
	if full, ok := c.names.Desc(uint64(f)); ok && full.Name == m.Name {
		*m = full.MethodName
	}
}

func (c *Contracts) note(text string) {
	if c.Note != nil {
		c.Note(text)
	}
}

// Find searches the modules that it has not seen before for a runtime.
func (c *Contracts) Find(table *module.Table) {
	if c.tried == nil {
		c.tried = map[uint32]bool{}
		r, err := c.Memory()
		if err != nil {
			c.note("cannot read the runtime's tables: " + err.Error())
			return
		}
		c.reader = r
	}
	for i := 0; i < table.Len() && c.tables == nil && c.reader != nil; i++ {
		m := table.At(i)
		if c.tried[m.ID] || m.ELF == nil {
			continue
		}
		c.tried[m.ID] = true
		t, err := contract.Open(c.reader, m.ELF, m.Bias)
		if e, ok := err.(*contract.Error); ok && e.Structure != contract.NoRuntime {
			c.note("the tables of " + m.Path + " cannot be used: " + err.Error())
		}
		if c.tables = t; t != nil {
			c.steps = managed.New(t)
		}
	}
}

// Forget makes Find search all modules without a runtime again: new modules may have
// their numbers.
func (c *Contracts) Forget() { clear(c.tried) }

// Learn verifies the layout of the tables with a report of DoStackSnapshot, and then passes the tables to the
// merger. Verified tables are never refuted.
func (c *Contracts) Learn(to *merge.Merger, s *clr.Capture) {
	if c.tables == nil {
		return
	}
	for i := 0; i < len(s.Frames) && !c.tables.Proven() && !c.tables.Refuted(); i++ {
		if f := &s.Frames[i]; !f.Marker() {
			c.tables.Confirm(f.IP, uint64(f.Function))
		}
	}
	if c.tables.Proven() && !c.inUse {
		to.SetManaged(c.steps)
		c.inUse = true
	}
}

// contracts is the agent's state around Contracts.
type contracts struct {
	Contracts

	// Comparisons of our steps over managed frames with the CLR's next frame, if enabled.
	check                  bool
	agree, differ, unknown uint64
	mem                    memory.Window
}

func newContracts(a *Agent, host Host) contracts {
	return contracts{
		Contracts: Contracts{Memory: host.Memory, Note: func(text string) { a.stream.Out.Note(text) }},
		check:     os.Getenv(checkVariable) != "",
	}
}

// checkVariable, set to anything, makes the agent compare its steps of managed
// frames with the CLR's in every sample.
const checkVariable = "SEEDWALK_CHECK_MANAGED"

// maxBetween is the highest number of frames that the CLR omits between two that it reports.
const maxBetween = 16

// compare steps from each frame that the CLR reported to the next one, and counts how
// often both agree.
func (c *contracts) compare(a *Agent, s *clr.Capture) {
	if !c.check || !c.inUse || s.Result.Failed() || s.Status != clr.Captured {
		return
	}
	c.mem.Reset(s.Stack.Addr, s.Stack.Data)
	for i := 0; i+1 < len(s.Frames); i++ {
		if s.Frames[i].Marker() || s.Frames[i+1].Marker() {
			continue
		}
		switch c.reaches(a, &s.Frames[i], &s.Frames[i+1]) {
		case unwind.StopNone:
			c.agree++
		case unwind.NoProgress:
			c.differ++
		default:
			c.unknown++
		}
	}
}

// reaches steps from one frame to the next. It returns StopNone if it arrives there, and
// NoProgress if it passes it.
func (c *contracts) reaches(a *Agent, from, to *clr.SnapshotFrame) unwind.Stop {
	regs := from.Registers(a.walker.Arch())
	at := unwind.State{Regs: &regs, Trust: unwind.TrustCLR}
	var f unwind.Frame
	bounds := unwind.Bounds{Low: from.SP}
	for range maxBetween {
		if stop := c.steps.Step(&at, &c.mem, &bounds, &f); stop != unwind.StopNone {
			return stop
		}
		fid, _ := a.names.FunctionFromIP(regs.IP())
		switch {
		case fid == to.Function && (regs.SP() == to.SP || regs.FP() == to.FP):
			return unwind.StopNone
		case regs.SP() > to.SP && regs.SP() > to.FP:
			return unwind.NoProgress
		}
	}
	return unwind.Limit
}

// write sends the figures of the comparison.
func (c *contracts) write(w *wire.Writer) {
	if !c.check {
		return
	}
	w.Stats("managed_steps_agree", c.agree)
	w.Stats("managed_steps_differ", c.differ)
	w.Stats("managed_steps_unknown", c.unknown)
}
