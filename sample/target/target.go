package target

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Process is the sampled process: its id, architecture, mappings, and runtime tables.
type Process struct {
	pid    string
	Arch   context.Arch
	Mem    live.Memory
	loader *live.Loader
	Maps   []live.Mapping                        // sorted; if there is a view: the executable ones
	MapsOf func(pid int) ([]live.Mapping, error) // reads all mappings; nil: of a core, or there is a view
	View   mapView                               // of a running process; nil: mapsOf tells all
	Mapped func() *module.Table                  // of Windows: maps now, nil after the end
	Guest  *live.Guest                           // nil: the process is no emulator
	Table  *module.Table
	Read   time.Time
	pause  time.Duration  // after read, before the mappings are read again
	Learnt time.Time      // when learn last made a table
	close  func()         // of view; nil: nothing is open
	tried  map[uint32]int // modules looked at for a runtime, and how often

	Tables    *contract.Tables
	Steps     *managed.Tables // over tables
	Names     *naming.Names
	File      func(path string, most int64) ([]byte, error) // reads a file of the process; nil: none
	Threads   threadList
	Special   managed.Specials
	entrances managed.Entrances
	Path      string // of the module that holds the runtime
	Why       string // why there are no tables

	VerifyAgain time.Time // the tables are not verified again before
}

func New(pid int, a context.Arch, mem live.Memory, loader *live.Loader) *Process {
	t := &Process{pid: strconv.Itoa(pid), Arch: a, Mem: mem, loader: loader, tried: map[uint32]int{}}
	if pid != 0 {
		t.File = FilesOf(pid)
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
	MapsPause   = 19                   // times what the last one took, which makes it a twentieth of the time
	maxPause    = time.Second
	learnAtMost = time.Millisecond // between tables that learn makes
	maxTries    = 200              // to find a runtime in a module, which may be in the middle of its start
)

// Refresh reads the mappings again. It reports whether they are others than before or a
// runtime has been found: it has not read them if it did so a moment ago.
func (t *Process) Refresh(pid int) bool {
	began := time.Now()
	if began.Sub(t.Read) < max(mapsAtMost, t.pause) {
		return false
	}
	changed := t.reread(pid)
	t.Read = time.Now()
	return changed
}

func (t *Process) reread(pid int) bool {
	if t.Mapped != nil {
		table := t.Mapped()
		if table == nil {
			return false
		}
		t.Table = table
		t.Special = t.entrances.Of(table)
		t.Find()
		return true
	}
	began := time.Now()
	maps, err := t.mappings(pid)
	t.pause = min(MapsPause*time.Since(began), maxPause)
	if err != nil && len(maps) == 0 {
		return false
	}
	if t.Table != nil && slices.Equal(maps, t.Maps) {
		was := t.Tables
		t.Find()
		return t.Tables != was
	}
	t.Set(maps)
	return true
}

// Close closes what the target has opened.
func (t *Process) Close() {
	if t.close != nil {
		t.close()
	}
}

func (t *Process) mappings(pid int) ([]live.Mapping, error) {
	if t.View != nil {
		return t.View.Executable()
	}
	return t.MapsOf(pid)
}

// Learn looks up the mapping that holds an address, at which a walk has ended, and adds it to
// the code that is known. It reports whether the code there is other than before.
func (t *Process) Learn(addr uint64) bool {
	if t.View == nil || t.Table == nil || time.Since(t.Learnt) < learnAtMost {
		return false
	}
	m := t.View.At(addr)
	if m == nil || !m.Exec {
		return false
	}
	if old := t.Code(addr); old != nil && *old == *m {
		return false
	}
	t.Learnt = time.Now()
	t.Maps = insert(t.Maps, *m)
	t.Table = t.loader.Table(t.Maps)
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

// Set takes mappings, and looks for a runtime in them.
func (t *Process) Set(maps []live.Mapping) {
	t.Maps, t.Table = maps, t.loader.Table(maps)
	t.Find()
}

// Find looks for a runtime in modules that have not been refused for good.
func (t *Process) Find() {
	for i := 0; i < t.Table.Len() && t.Tables == nil; i++ {
		m := t.Table.At(i)
		if t.tried[m.ID] >= maxTries {
			continue
		}
		tables, err := t.open(m)
		if e, ok := err.(*contract.Error); ok {
			t.tried[m.ID]++
			if e.Structure == contract.NoRuntime {
				t.tried[m.ID] = maxTries
			} else {
				t.Why = "the tables of " + m.Path + " cannot be used: " + err.Error()
			}
			continue
		}
		names, err := naming.New(t.Mem, tables.Descriptor())
		if err != nil {
			t.Why = err.Error()
			t.tried[m.ID] = maxTries
			continue
		}
		t.Tables, t.Steps, t.Names, t.Why = tables, managed.New(tables), names, ""
		t.Names.File, t.Names.Path = t.File, func(addr uint64) string { return t.Mapping(addr).File() }
		t.Path = m.Path
		t.Threads.init(t.Mem, tables)
	}
}

// open opens the tables of the runtime in a module.
func (t *Process) open(m *module.Module) (*contract.Tables, error) {
	switch {
	case m.ELF != nil:
		return contract.Open(t.Mem, m.ELF, m.Bias)
	case m.PE != nil && t.Mapped != nil:
		return contract.OpenPE(t.Mem, m.PE, m.Bias)
	}
	return nil, &contract.Error{Structure: contract.NoRuntime}
}

// Mapping is the one that holds an address, nil if none does.
func (t *Process) Mapping(addr uint64) *live.Mapping {
	if m := t.known(addr); m != nil || t.View == nil {
		return m
	}
	return t.View.At(addr)
}

// Code is the executable mapping that holds an address as of the last reading, nil if none does.
func (t *Process) Code(addr uint64) *live.Mapping {
	if m := t.known(addr); m != nil && m.Exec {
		return m
	}
	return nil
}

func (t *Process) known(addr uint64) *live.Mapping {
	i := sort.Search(len(t.Maps), func(i int) bool { return t.Maps[i].End > addr })
	if i < len(t.Maps) && t.Maps[i].Start <= addr {
		return &t.Maps[i]
	}
	return nil
}

// verifyRest is how long the tool rests between two tries to verify the tables, in times
// that the last try took.
const verifyRest = 20

// Verify lets the runtime's tables prove their layout, if that is not proven and the last try
// was long enough ago.
func (t *Process) Verify() {
	if t.Tables == nil || !t.Tables.Undecided() {
		return
	}
	began := time.Now()
	if began.Before(t.VerifyAgain) {
		return
	}
	t.Tables.Verify()
	now := time.Now()
	t.VerifyAgain = now.Add(max(mapsAtMost, verifyRest*now.Sub(began)))
}

// verifyFor bounds how long the tables of a running process are verified before it is looked at.
const verifyFor = 200 * time.Millisecond

// VerifySoon verifies the tables of a running process, again while they prove nothing: a process
// that starts has compiled no method yet, and one that compiles can contradict itself for a moment.
func (t *Process) VerifySoon() {
	t.Verify()
	for end := time.Now().Add(verifyFor); t.Tables != nil && !t.Tables.MapProven() && !t.Tables.Refuted() && time.Now().Before(end); t.Verify() {
		time.Sleep(time.Until(t.VerifyAgain))
	}
}

// UnprovenWhy says why code that was compiled at run time cannot be read, "" if it can.
func (t *Process) UnprovenWhy() string {
	if t.Tables == nil || t.Tables.Proven() {
		return t.Why
	}
	return "the runtime's tables cannot be read: " + t.Tables.Evidence().String()
}

// Unproven reports whether an address is in code of a runtime whose tables cannot be read, or
// not yet.
func (t *Process) Unproven(ip uint64) bool {
	if t.Table == nil || !t.Table.IsManaged(ip) {
		return false
	}
	if t.Tables == nil {
		return t.Why != ""
	}
	var m contract.Method
	return t.Tables.Find(ip, &m) == contract.Unproven
}

// HijackStub finds the stub of hijacked returns, which the runtime writes over return addresses, in
// the runtime's module; 0 if it is not there.
func (t *Process) HijackStub() uint64 {
	for i := range t.Table.Len() {
		m := t.Table.At(i)
		if m.PE != nil && m.Path == t.Path {
			return managed.FindHijackStubPE(m.PE, m.Bias)
		}
		if m.ELF == nil || m.CFI == nil {
			continue
		}
		if !contract.Holds(m.ELF) {
			continue
		}
		code := make([]byte, m.End-m.Start)
		if at := managed.FindHijackStub(m, code[:t.Mem.ReadSome(code, m.Start)]); at != 0 {
			return at
		}
	}
	return 0
}

// HasCLR reports whether the CLR's library is among the modules.
func (t *Process) HasCLR() bool {
	for i := range t.Table.Len() {
		if strings.HasSuffix(strings.ToLower(t.Table.At(i).Path), `\coreclr.dll`) {
			return true
		}
	}
	return false
}
