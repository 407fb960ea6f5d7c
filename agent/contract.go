package agent

import (
	"os"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/wire"
)

// Contracts finds the runtime's own code tables and hands them to a merger
// once they are known to be right. It works while nothing is suspended.
type Contracts struct {
	Memory func() (memory.Reader, error) // reads the target's memory
	Note   func(text string)             // why there are no tables; nil: nobody wants to know

	reader memory.Reader
	tables *contract.Tables
	steps  *managed.Tables // over tables
	tried  map[uint32]bool
	inUse  bool // the merger steps by them
	names  *naming.Names
}

// instance says what a method is instantiated over, whose FunctionID is the runtime's
// MethodDesc: that has been proven with the tables.
func (c *Contracts) instance(images *naming.Images, f clr.FunctionID, m *clr.MethodName) {
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

// Find looks for a runtime among modules not looked at before.
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

// Forget makes modules that hold no runtime worth another look: others may have
// their numbers now.
func (c *Contracts) Forget() { clear(c.tried) }

// Learn takes what DoStackSnapshot reported as the proof of the tables' layout,
// and hands them to the merger or withdraws them.
func (c *Contracts) Learn(to *merge.Merger, s *clr.Capture) {
	if c.tables == nil {
		return
	}
	for i := 0; i < len(s.Frames) && !c.tables.Proven() && !c.tables.Refuted(); i++ {
		if f := &s.Frames[i]; !f.Marker() {
			c.tables.Confirm(f.IP, uint64(f.Function))
		}
	}
	switch {
	case c.tables.Refuted() && c.inUse:
		to.SetManaged(nil)
		c.inUse = false
	case c.tables.Proven() && !c.inUse:
		to.SetManaged(c.steps)
		c.inUse = true
	}
}

// contracts are an agent's.
type contracts struct {
	Contracts

	// Steps of managed frames compared with the CLR's next frame, if asked for.
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

// maxBetween is how many frames the CLR may leave out between two it reports.
const maxBetween = 16

// compare steps from every frame the CLR reported to the next one, and counts
// how often the two agree.
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

// reaches steps from one frame until it stands at the next: StopNone if it
// does, NoProgress if it has passed it.
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
