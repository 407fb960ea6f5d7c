package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// tables keeps the module table up to date.
type tables struct {
	build func() *module.Table // reads the process; returns nil if it cannot be read now
	table *module.Table
	loads uint64
	dirty bool
	read  time.Time
}

func (t *tables) init(build func() *module.Table) {
	t.build = build
	t.dirty = true
}

// maxBuilds bounds how often a table is rebuilt because modules changed during the build.
// If they keep changing, the captures show it.
const maxBuilds = 3

// refresh reads the mappings again if anything changed. With force, it also reads them after
// a walk met unknown code, at most once per tableRefresh. It reports whether the table is
// new.
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

// holds reports whether the table matches the modules at the time of a capture.
func (t *tables) holds(c *clr.Capture) bool { return c.Loads == 0 || c.Loads == t.loads }
