package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/module"
)

// tables keeps the module table in step with the process.
type tables struct {
	build func() *module.Table // reads the process; nil if it cannot be read now
	table *module.Table
	loads uint64
	dirty bool
	read  time.Time
}

func (t *tables) init(build func() *module.Table) {
	t.build = build
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
	a.take.tables(a, t.table)
	a.stream.Modules(t.table)
	return true
}

// holds reports whether the table is of the modules that a capture was taken among.
func (t *tables) holds(c *clr.Capture) bool { return c.Loads == 0 || c.Loads == t.loads }
