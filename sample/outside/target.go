package outside

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// target is what is known of the process that is sampled.
type target struct {
	pid    string
	arch   context.Arch
	mem    live.Memory
	loader *live.Loader
	maps   []live.Mapping                        // sorted; if there is a view: the executable ones
	mapsOf func(pid int) ([]live.Mapping, error) // reads all mappings; nil: of a core, or there is a view
	view   mapView                               // of a running process; nil: mapsOf tells all
	mapped func() *module.Table                  // of Windows: what is mapped now, nil if the process has ended
	guest  *live.Guest                           // nil: the process is no emulator
	table  *module.Table
	read   time.Time
	pause  time.Duration  // after read, before the mappings are read again
	learnt time.Time      // when learn last made a table
	close  func()         // of view; nil: nothing is open
	tried  map[uint32]int // modules looked at for a runtime, and how often

	tables    *contract.Tables
	steps     *managed.Tables // over tables
	names     *naming.Names
	file      func(path string, most int64) ([]byte, error) // reads a file of the process; nil: none
	threads   threadList
	special   managed.Specials
	entrances managed.Entrances
	path      string // of the module that holds the runtime
	why       string // why there are no tables

	verifyAgain time.Time // the tables are not verified again before
}

func newTarget(pid int, a context.Arch, mem live.Memory, loader *live.Loader) *target {
	t := &target{pid: strconv.Itoa(pid), arch: a, mem: mem, loader: loader, tried: map[uint32]int{}}
	if pid != 0 {
		t.file = filesOf(pid)
	}
	return t
}

// mapView looks up mappings of a running process.
type mapView interface {
	Executable() ([]live.Mapping, error)
	At(addr uint64) *live.Mapping
}

const (
	mapsAtMost  = 5 * time.Millisecond // between readings of the mappings, or
	mapsPause   = 19                   // times what the last one took, which makes it a twentieth of the time
	maxPause    = time.Second
	learnAtMost = time.Millisecond // between tables that learn makes
	maxTries    = 200              // to find a runtime in a module, which may be in the middle of its start
)

// refresh reads the mappings again. It reports whether they are others than before or a
// runtime has been found: it has not read them if it did so a moment ago.
func (t *target) refresh(pid int) bool {
	began := time.Now()
	if began.Sub(t.read) < max(mapsAtMost, t.pause) {
		return false
	}
	changed := t.reread(pid)
	t.read = time.Now()
	return changed
}

func (t *target) reread(pid int) bool {
	if t.mapped != nil {
		table := t.mapped()
		if table == nil {
			return false
		}
		t.table = table
		t.special = t.entrances.Of(table)
		t.find()
		return true
	}
	began := time.Now()
	maps, err := t.mappings(pid)
	t.pause = min(mapsPause*time.Since(began), maxPause)
	if err != nil && len(maps) == 0 {
		return false
	}
	if t.table != nil && slices.Equal(maps, t.maps) {
		was := t.tables
		t.find()
		return t.tables != was
	}
	t.set(maps)
	return true
}

// shut closes what the target has opened.
func (t *target) shut() {
	if t.close != nil {
		t.close()
	}
}

func (t *target) mappings(pid int) ([]live.Mapping, error) {
	if t.view != nil {
		return t.view.Executable()
	}
	return t.mapsOf(pid)
}

// learn looks up the mapping that holds an address, at which a walk has ended, and adds it to
// the code that is known. It reports whether the code there is other than before.
func (t *target) learn(addr uint64) bool {
	if t.view == nil || t.table == nil || time.Since(t.learnt) < learnAtMost {
		return false
	}
	m := t.view.At(addr)
	if m == nil || !m.Exec {
		return false
	}
	if old := t.code(addr); old != nil && *old == *m {
		return false
	}
	t.learnt = time.Now()
	t.maps = insert(t.maps, *m)
	t.table = t.loader.Table(t.maps)
	return true
}

// insert returns sorted mappings with m among them, and without those that m overlaps.
func insert(maps []live.Mapping, m live.Mapping) []live.Mapping {
	first := sort.Search(len(maps), func(i int) bool { return maps[i].End > m.Start })
	end := first
	for end < len(maps) && maps[end].Start < m.End {
		end++
	}
	return slices.Concat(maps[:first], []live.Mapping{m}, maps[end:])
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
		t.names.File, t.names.Path = t.file, func(addr uint64) string { return t.mapping(addr).File() }
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
	if m := t.known(addr); m != nil || t.view == nil {
		return m
	}
	return t.view.At(addr)
}

// code is the executable mapping that holds an address as of the last reading, nil if none does.
func (t *target) code(addr uint64) *live.Mapping {
	if m := t.known(addr); m != nil && m.Exec {
		return m
	}
	return nil
}

func (t *target) known(addr uint64) *live.Mapping {
	i := sort.Search(len(t.maps), func(i int) bool { return t.maps[i].End > addr })
	if i < len(t.maps) && t.maps[i].Start <= addr {
		return &t.maps[i]
	}
	return nil
}

// verifyRest is how long the tool rests between two tries to verify the tables, in times
// that the last try took.
const verifyRest = 20

// verify lets the runtime's tables prove their layout, if that is not proven and the last try
// was long enough ago.
func (t *target) verify() {
	if t.tables == nil || !t.tables.Undecided() {
		return
	}
	began := time.Now()
	if began.Before(t.verifyAgain) {
		return
	}
	t.tables.Verify()
	now := time.Now()
	t.verifyAgain = now.Add(max(mapsAtMost, verifyRest*now.Sub(began)))
}

// verifyFor bounds how long the tables of a running process are verified before it is looked at.
const verifyFor = 200 * time.Millisecond

// verifySoon verifies the tables of a running process, again while they prove nothing: a process
// that starts has compiled no method yet, and one that compiles can contradict itself for a moment.
func (t *target) verifySoon() {
	t.verify()
	for end := time.Now().Add(verifyFor); t.tables != nil && !t.tables.MapProven() && !t.tables.Refuted() && time.Now().Before(end); t.verify() {
		time.Sleep(time.Until(t.verifyAgain))
	}
}

// unprovenWhy says why code that was compiled at run time cannot be read, "" if it can.
func (t *target) unprovenWhy() string {
	if t.tables == nil || t.tables.Proven() {
		return t.why
	}
	return "the runtime's tables cannot be read: " + t.tables.Evidence().String()
}

// unproven reports whether an address is in code of a runtime whose tables cannot be read, or
// not yet.
func (t *target) unproven(ip uint64) bool {
	if t.table == nil || !t.table.IsManaged(ip) {
		return false
	}
	if t.tables == nil {
		return t.why != ""
	}
	var m contract.Method
	return t.tables.Find(ip, &m) == contract.Unproven
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
