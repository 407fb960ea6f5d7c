package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/wire"
)

// tables keeps the module table in step with the process.
type tables struct {
	build func() *module.Table // reads the process; nil if it cannot be read now
	table *module.Table
	loads uint64
	dirty bool
	read  time.Time
	sent  map[uint32]bool
}

func (t *tables) init(build func() *module.Table) {
	t.build = build
	t.sent = map[uint32]bool{}
	t.dirty = true
}

// maxBuilds bounds how often a table is made anew because the modules changed
// while it was made. If they go on changing, captures tell.
const maxBuilds = 3

// refresh reads the mappings again if anything changed, or if force asks for
// it because a walk met unknown code, at most every tableRefresh. It reports
// whether the table is new.
func (t *tables) refresh(a *Agent, force bool) bool {
	loads := a.host.LoaderChanges()
	changed := loads != t.loads || t.table == nil
	since := time.Since(t.read)
	if !changed && !(t.dirty && since > tableRefresh) && !(force && since > time.Millisecond) {
		return false
	}
	table := t.build()
	for n := 1; table != nil && n < maxBuilds && a.host.LoaderChanges() != loads; n++ {
		loads = a.host.LoaderChanges()
		table = t.build()
	}
	if table == nil {
		return false
	}
	t.table = table
	t.loads, t.dirty, t.read = loads, false, time.Now()
	a.walker.SetTable(t.table)
	a.raw.Table(t.table)
	a.take.tables(a, t.table)
	t.announce(a.out)
	return true
}

// holds reports whether the table is of the modules that a capture was taken among.
func (t *tables) holds(c *clr.Capture) bool { return c.Loads == 0 || c.Loads == t.loads }

func (t *tables) announce(out *wire.Writer) {
	for i := range t.table.Len() {
		m := t.table.At(i)
		if t.sent[m.ID] {
			continue
		}
		t.sent[m.ID] = true
		out.Module(&wire.Module{ID: m.ID, Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path, BuildID: m.BuildID})
	}
}

func (t *tables) id(index int32) uint32 { return t.table.At(int(index)).ID }
