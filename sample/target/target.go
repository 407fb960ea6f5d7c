package target

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Process is the sampled process: its id, architecture, mappings, and runtime tables. Its engine calls it, on
// one goroutine. The mappings come from the kernel, and the tables from the process's memory.
type Process struct {
	Arch   context.Arch
	Mem    live.Memory
	pages  *memory.Pages // Mem, for the runtime's tables and names; nil: no runtime yet
	loader *live.Loader
	Maps   []live.Mapping                        // sorted; with a view: only the executable ones
	MapsOf func(pid int) ([]live.Mapping, error) // reads all mappings; nil: a core, or there is a view
	View   mapView                               // of a running process; nil: MapsOf reads all
	// on Windows: the current module table, nil after the process's end
	Mapped   func() *module.Table
	Guest    *live.Guest // nil: the process is not an emulator
	Table    *module.Table
	Read     time.Time
	pause    time.Duration     // after Read, before the mappings are read again
	mapsTime JobTime           // of reading the mappings
	Learnt   time.Time         // when Learn last made a table
	close    func()            // closes View; nil: nothing is open
	searches map[uint32]search // for a runtime, by module

	Tables    *contract.Tables
	Steps     *managed.Tables // over tables
	Names     *naming.Names
	File      func(path string, most int64) ([]byte, error) // reads a file of the process; nil: none
	Threads   threadList
	Special   managed.Specials
	entrances managed.Entrances
	Path      string // of the module with the runtime
	Why       string // why there are no tables

	VerifyAgain time.Time // the tables are not verified again before this time
	verifyTime  JobTime
}

// JobTime estimates how long a repeated job takes. One run on a busy machine can take far too long, so the
// estimate at most doubles from one run to the next.
type JobTime time.Duration

const firstJobTime = time.Millisecond

// Add updates the estimate with the duration of a run, and returns it.
func (t *JobTime) Add(d time.Duration) time.Duration {
	*t = JobTime(min(d, 2*max(time.Duration(*t), firstJobTime)))
	return time.Duration(*t)
}

// Pause updates the estimate with the duration of a run, and returns the pause before the next run: rest
// times the estimate, and at most the time most.
func (t *JobTime) Pause(d, rest, most time.Duration) time.Duration { return min(rest*t.Add(d), most) }

func New(pid int, a context.Arch, mem live.Memory, loader *live.Loader) *Process {
	t := &Process{Arch: a, Mem: mem, loader: loader, searches: map[uint32]search{}}
	if pid != 0 {
		t.File = FilesOf(pid)
	}
	return t
}

// KeepPages makes the tables and the names read each page of the process once, until DropPages. They do not
// see what the process changes meanwhile.
func (t *Process) KeepPages() {
	if t.pages != nil {
		t.pages.Begin()
	}
}

// DropPages ends what KeepPages began.
func (t *Process) DropPages() {
	if t.pages != nil {
		t.pages.End()
	}
}

// Word returns the word at an address of the process, 0 if it is unreadable.
func (t *Process) Word(addr uint64) uint64 {
	w, _ := memory.Word(t.Mem, addr)
	return w
}

// Uint32 is Word for 32 bits.
func (t *Process) Uint32(addr uint64) uint32 {
	v, _ := memory.Uint32(t.Mem, addr)
	return v
}

// mapView looks up mappings of a running process.
type mapView interface {
	Executable() ([]live.Mapping, error)
	At(addr uint64) *live.Mapping
}

const (
	mapsAtMost = 5 * time.Millisecond // shortest time between readings of the mappings
	// shortest time from one reading to the next, in durations of the first: readings take a twentieth
	MapsPause   = 19
	maxPause    = time.Second      // longest such time
	learnAtMost = time.Millisecond // shortest time between tables made by Learn
)

// Refresh reads the mappings again, and searches for a runtime. It does nothing if the last reading was too
// recent: readings use at most a twentieth of the time. It returns true if the mappings have changed or a
// runtime has been found.
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
	t.pause = t.mapsTime.Pause(time.Since(began), MapsPause, maxPause)
	if err != nil && len(maps) == 0 {
		return false
	}
	if t.Table != nil && slices.Equal(maps, t.Maps) {
		prev := t.Tables
		t.Find()
		return t.Tables != prev
	}
	t.Set(maps)
	return true
}

// Close closes View.
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

// Learn looks up the mapping of an address at which a walk ended, and adds it to the known code. It reports
// whether the code there has changed.
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

// insert returns sorted mappings with m in place of the mappings that it overlaps.
func insert(maps []live.Mapping, m live.Mapping) []live.Mapping {
	first := sort.Search(len(maps), func(i int) bool { return maps[i].End > m.Start })
	end := first
	for end < len(maps) && maps[end].Start < m.End {
		end++
	}
	return slices.Concat(maps[:first], []live.Mapping{m}, maps[end:])
}

// Set sets the mappings, and looks for a runtime in them.
func (t *Process) Set(maps []live.Mapping) {
	t.Maps, t.Table = maps, t.loader.Table(maps)
	t.Find()
}

// search is the search for a runtime in one module.
type search struct {
	began   time.Time // the first attempt
	next    time.Time // no attempt is made before this time
	refused bool      // no attempt is made again
}

// A failed attempt is followed by a pause: a twentieth of the time since the first attempt, and at most a
// second. A runtime that starts slowly is thus found soon after it is ready.
const (
	searchRest = 20
	maxRest    = time.Second
)

func (s search) due(now time.Time) bool { return !s.refused && !now.Before(s.next) }

// failed returns the search after an attempt at now that has failed.
func (s search) failed(now time.Time) search {
	if s.began.IsZero() {
		s.began = now
	}
	s.next = now.Add(min(now.Sub(s.began)/searchRest, maxRest))
	return s
}

// Find looks for a runtime in the modules that may be searched now.
func (t *Process) Find() {
	now := time.Now()
	for i := 0; i < t.Table.Len() && t.Tables == nil; i++ {
		m := t.Table.At(i)
		if !t.searches[m.ID].due(now) {
			continue
		}
		tables, err := t.open(m)
		if e, ok := err.(*contract.Error); ok {
			if e.Structure == contract.NoRuntime {
				t.searches[m.ID] = search{refused: true}
				continue
			}
			t.searches[m.ID] = t.searches[m.ID].failed(now)
			t.Why = "the tables of " + m.Path + " cannot be used: " + err.Error()
			continue
		}
		names, err := naming.New(t.pages, tables.Descriptor())
		if err != nil {
			t.Why = err.Error()
			t.searches[m.ID] = search{refused: true}
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
	if t.pages == nil {
		t.pages = memory.NewPages(t.Mem)
	}
	switch {
	case m.ELF != nil:
		return contract.Open(t.pages, m.ELF, m.Bias)
	case m.PE != nil && t.Mapped != nil:
		return contract.OpenPE(t.pages, m.PE, m.Bias)
	}
	return nil, &contract.Error{Structure: contract.NoRuntime}
}

// Mapping returns the mapping that contains an address, or nil.
func (t *Process) Mapping(addr uint64) *live.Mapping {
	if m := t.known(addr); m != nil || t.View == nil {
		return m
	}
	return t.View.At(addr)
}

// Code returns the executable mapping that contained an address at the last reading, nil if there was none.
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

// The pause between two verifications of the tables is verifyRest times the duration of the last one, and at
// most verifyMost. On a busy machine a verification takes long because the tool waits for a processor, and no
// sample is sent before the tables are verified.
const (
	verifyRest = 20
	verifyMost = 100 * time.Millisecond
)

// Verify verifies the layout of the runtime's tables if it is not verified yet and the last attempt was long
// enough ago.
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
	t.VerifyAgain = now.Add(max(mapsAtMost, t.verifyTime.Pause(now.Sub(began), verifyRest, verifyMost)))
}

// verifyFor bounds the time for verifying the tables of a running process before it is inspected.
const verifyFor = 200 * time.Millisecond

// VerifySoon verifies the tables of a running process, and repeats that while the result is undecided: a
// starting process has not compiled a method yet, and one that compiles may be inconsistent for a moment.
func (t *Process) VerifySoon() {
	t.Verify()
	for end := time.Now().Add(verifyFor); t.Tables != nil && !t.Tables.MapProven() && !t.Tables.Refuted() &&
		time.Now().Before(end); t.Verify() {
		time.Sleep(time.Until(t.VerifyAgain))
	}
}

// UnprovenWhy returns why code that was compiled at run time cannot be read, "" if it can.
func (t *Process) UnprovenWhy() string {
	if t.Tables == nil || t.Tables.Proven() {
		return t.Why
	}
	return "the runtime's tables cannot be read: " + t.Tables.Evidence().String()
}

// Unproven reports whether an address is in code of a runtime whose tables cannot be read, not yet, or no
// more because the process has ended. The memory that a core lacks is no such reason.
func (t *Process) Unproven(ip uint64) bool {
	if t.Table == nil || !t.Table.IsManaged(ip) {
		return false
	}
	if t.Tables == nil {
		return t.Why != ""
	}
	var m contract.Method
	why := t.Tables.Find(ip, &m)
	return why == contract.Unproven || why == contract.Unreadable && t.View != nil
}

// Unloaded reports whether the runtime has freed the code at an address.
func (t *Process) Unloaded(ip uint64) bool { return t.Tables != nil && t.Tables.Unloaded(ip) }

// Stubs returns the address of the stub for hijacked returns in the runtime's module, 0 if it is not found.
// The runtime writes this address over return addresses. restore is the result of managed.FindRestore.
func (t *Process) Stubs() (hijack uint64, restore memory.Range) {
	for i := range t.Table.Len() {
		m := t.Table.At(i)
		if m.PE != nil && m.Path == t.Path {
			return managed.FindHijackStubPE(m.PE, m.Bias), restore
		}
		if m.ELF == nil || m.CFI == nil {
			continue
		}
		if !contract.Holds(m.ELF) {
			continue
		}
		code := make([]byte, m.End-m.Start)
		code = code[:t.Mem.ReadSome(code, m.Start)]
		if hijack = managed.FindHijackStub(m, code); hijack != 0 {
			return hijack, managed.FindRestore(m, code)
		}
	}
	return 0, restore
}

// HasCLR reports whether the CLR's library is among the modules (Windows).
func (t *Process) HasCLR() bool {
	for i := range t.Table.Len() {
		if strings.HasSuffix(strings.ToLower(t.Table.At(i).Path), `\coreclr.dll`) {
			return true
		}
	}
	return false
}
