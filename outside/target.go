package outside

import (
	"encoding/binary"
	"sort"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/module"
)

// target is what is known of the process that is sampled.
type target struct {
	pid    string
	arch   context.Arch
	mem    live.Memory
	loader *live.Loader
	maps   []live.Mapping
	mapsOf func(pid int) ([]live.Mapping, error) // what is mapped, nil: as the kernel says
	mapped func() *module.Table                  // of Windows: what is mapped now, nil if the process has ended
	guest  *live.Guest                           // nil: the process is no emulator
	table  *module.Table
	read   time.Time
	tried  map[uint32]int // modules looked at for a runtime, and how often

	tables  *contract.Tables
	steps   *managed.Tables // over tables
	names   *naming.Names
	file    func(path string, most int64) ([]byte, error) // reads a file of the process's; nil: none is read
	threads threadList
	special special
	path    string // of the module that holds the runtime
	why     string // why there are no tables
}

func newTarget(pid int, a context.Arch, mem live.Memory, loader *live.Loader) *target {
	t := &target{pid: strconv.Itoa(pid), arch: a, mem: mem, loader: loader, tried: map[uint32]int{}}
	if pid != 0 {
		t.file = filesOf(pid)
	}
	return t
}

// Mappings are read again at most so often, and a runtime that is being set up is
// tried so many times.
const (
	mapsAtMost = 5 * time.Millisecond
	maxTries   = 200
)

// refresh reads the mappings again. It answers false if it did so a moment ago or
// the process has ended.
func (t *target) refresh(pid int) bool {
	if time.Since(t.read) < mapsAtMost {
		return false
	}
	t.read = time.Now()
	if t.mapped != nil {
		table := t.mapped()
		if table == nil {
			return false
		}
		t.table = table
		t.special.find(table)
		t.find()
		t.read = time.Now()
		return true
	}
	maps, err := t.mappings(pid)
	if err != nil && len(maps) == 0 {
		return false
	}
	t.set(maps)
	t.read = time.Now()
	return true
}

func (t *target) mappings(pid int) ([]live.Mapping, error) {
	if t.mapsOf != nil {
		return t.mapsOf(pid)
	}
	return live.Maps(pid)
}

// set takes mappings, and looks for a runtime in them.
func (t *target) set(maps []live.Mapping) {
	t.maps, t.table = maps, t.loader.Table(maps)
	t.find()
}

// find looks for a runtime in modules that have not been refused for good.
func (t *target) find() {
	for i := 0; i < t.table.Len() && t.tables == nil; i++ {
		m := t.table.At(i)
		if t.tried[m.ID] >= maxTries {
			continue
		}
		tables, err := t.open(m)
		if e, ok := err.(*contract.Error); ok {
			t.tried[m.ID]++
			if e.Structure == contract.NoRuntime {
				t.tried[m.ID] = maxTries
			} else {
				t.why = "the tables of " + m.Path + " cannot be used: " + err.Error()
			}
			continue
		}
		names, err := naming.New(t.mem, tables.Descriptor())
		if err != nil {
			t.why = err.Error()
			t.tried[m.ID] = maxTries
			continue
		}
		t.tables, t.steps, t.names, t.why = tables, managed.New(tables), names, ""
		t.names.File = t.file
		t.path = m.Path
		t.threads.init(t.mem, tables)
	}
}

// open opens the tables of the runtime in a module.
func (t *target) open(m *module.Module) (*contract.Tables, error) {
	switch {
	case m.ELF != nil:
		return contract.Open(t.mem, m.ELF, m.Bias)
	case m.PE != nil && t.mapped != nil:
		return contract.OpenPE(t.mem, m.PE, m.Bias)
	}
	return nil, &contract.Error{Structure: contract.NoRuntime}
}

// mapping is the one that holds an address, nil if none does.
func (t *target) mapping(addr uint64) *live.Mapping {
	i := sort.Search(len(t.maps), func(i int) bool { return t.maps[i].End > addr })
	if i < len(t.maps) && t.maps[i].Start <= addr {
		return &t.maps[i]
	}
	return nil
}

// prove looks for return addresses in code that the runtime made, and asks the
// tables and the names whether they agree about it.
func (t *target) prove(c *capture) {
	if t.tables == nil || t.tables.Proven() || t.tables.Refuted() {
		return
	}
	known := func(desc uint64) bool {
		m, ok := t.names.Desc(desc)
		return ok && !m.Dynamic
	}
	for i := 0; i+8 <= len(c.stack.Data) && !t.tables.Proven() && !t.tables.Refuted(); i += 8 {
		ip := binary.LittleEndian.Uint64(c.stack.Data[i:])
		if m := t.mapping(ip); m != nil && m.Exec && !live.IsPE(m.Path) && t.table.IsManaged(ip) && t.tables.Call(ip) {
			t.tables.Prove(ip, known)
		}
	}
	if t.tables.Refuted() {
		t.why = "the runtime's tables are of another layout than supposed"
	}
}

// hijackStub finds the stub of hijacked returns, which the runtime writes over return addresses, in
// the runtime's module; 0 if it is not there.
func (t *target) hijackStub() uint64 {
	for i := range t.table.Len() {
		m := t.table.At(i)
		if m.PE != nil && m.Path == t.path {
			return managed.FindHijackStubPE(m.PE, m.Bias)
		}
		if m.ELF == nil || m.CFI == nil {
			continue
		}
		if !contract.Holds(m.ELF) {
			continue
		}
		code := make([]byte, m.End-m.Start)
		if at := managed.FindHijackStub(m, code[:t.mem.ReadSome(code, m.Start)]); at != 0 {
			return at
		}
	}
	return 0
}
