package agent

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// fakeThreads is the fake with threads that are suspended one at a time.
type fakeThreads struct {
	fake
	answers   []clr.HRESULT // of DoStackSnapshot, then S_OK
	suspended int
	merged    int // names that the agent requested while a thread was suspended
	primes    int
}

func (f *fakeThreads) Claim(clr.Thread) bool { return true }
func (f *fakeThreads) Release(clr.Thread)    {}
func (f *fakeThreads) Prime(clr.Thread) (int, clr.HRESULT) {
	f.primes++
	return f.primes - 1, clr.S_OK // the first has nothing to report
}
func (f *fakeThreads) Suspend(int, clr.Thread) clr.SuspendStatus {
	f.suspended++
	return clr.Suspended
}
func (f *fakeThreads) Resume(int, clr.Thread) { f.suspended--; f.rounds-- }
func (f *fakeThreads) Context(_ int, c *clr.Capture) bool {
	*c = f.world.Capture
	return true
}
func (f *fakeThreads) DoStackSnapshot(_ int, c *clr.Capture) {
	c.Frames, c.Result = f.world.Capture.Frames, clr.S_OK
	if len(f.answers) > 0 {
		c.Frames, c.Result = nil, f.answers[0]
		f.answers = f.answers[1:]
	}
}
func (f *fakeThreads) FunctionName(id clr.FunctionID) (demangle.MethodName, string, bool) {
	f.merged += f.suspended
	return f.fake.FunctionName(id)
}
func (f *fakeThreads) Table() *module.Table        { f.merged += f.suspended; return f.world.Table }
func (f *fakeThreads) Specials() *managed.Specials { return nil }
func (f *fakeThreads) Managed() *managed.Tables    { return nil }

// Prime has another signature than in Host, so it must hide the embedded method.
var _ ThreadHost = (*fakeThreads)(nil)

func runThreads(t *testing.T, f *fakeThreads) (map[wire.Type][]wire.Message, string) {
	t.Helper()
	defer func() {
		expect.True(t, f.suspended == 0 && f.merged == 0,
			"%d threads left suspended, %d calls while one was", f.suspended, f.merged)
	}()
	return runHost(t, f)
}

func runHost(t *testing.T, f ThreadHost) (map[wire.Type][]wire.Message, string) {
	t.Helper()
	var out bytes.Buffer
	reason := NewThreads(f, Config{RateHz: 1e6, Slots: 4},
		func(b []byte) error { out.Write(b); return nil }).Run()
	return messages(t, out.Bytes()), reason
}

func TestSingleThreads(t *testing.T) {
	f := &fakeThreads{fake: fake{world: fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native), rounds: 4},
		answers: []clr.HRESULT{clr.CORPROF_E_STACKSNAPSHOT_UNSAFE}}
	m, reason := runThreads(t, f)
	expect.True(t, reason == "the process ended" && f.primes == 2,
		"%q, primed after %d walks", reason, f.primes)
	samples := m[wire.TypeSample]
	if len(samples) != 3 { // four suspensions, one of them for the second try
		t.Fatalf("%d samples", len(samples))
	}
	for _, s := range samples {
		checkSample(t, f.world, s.(*wire.Sample))
	}
	checkStats(t, m[wire.TypeStats], 4,
		map[string]uint64{"tries/found/S_OK": 3, "tries/found/CORPROF_E_STACKSNAPSHOT_UNSAFE": 1})
}

// checkStats compares the last totals with the suspensions of the test: each is counted with its time and
// result, also those that were repeated.
func checkStats(t *testing.T, stats []wire.Message, suspensions uint64, tries map[string]uint64) {
	t.Helper()
	got, times := map[string]uint64{},
		map[string]*wire.Histogram{wire.StatSuspended: {}, wire.StatContext: {},
			wire.StatWalk: {}, wire.StatSnapshot: {}}
	for _, m := range stats {
		s := m.(*wire.Stats)
		for key, h := range times {
			h.Set(key, s)
		}
		if strings.HasPrefix(s.Key, wire.StatTries) {
			got[s.Key] = s.Value
		}
	}
	expect.True(t, maps.Equal(got, tries), "tries %v, want %v", got, tries)
	for key, h := range times {
		expect.True(t, h.Count() == suspensions, "%s of %d suspensions, want %d", key, h.Count(), suspensions)
	}
}

// A permanent error ends the sampling with its reason.
func TestSingleRefused(t *testing.T) {
	f := &fakeThreads{fake: fake{world: fs.Build(fs.Root, fs.Managed), rounds: 100},
		answers: []clr.HRESULT{clr.CORPROF_E_INCONSISTENT_WITH_FLAGS}}
	m, reason := runThreads(t, f)
	expect.True(t, strings.Contains(reason, "INCONSISTENT_WITH_FLAGS") && f.rounds >= 90 &&
		len(m[wire.TypeBye]) == 1, "%q with %d rounds to go", reason, f.rounds)
}

// A requested round gives the same stack as the stream, with names, and buffers nothing for a stream without
// a reader.
func TestOnce(t *testing.T) {
	world := fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native)
	id := world.Capture.Thread.ID
	for _, c := range []struct {
		name   string
		thread clr.ThreadID
		known  int
		stacks int
	}{{"all", 0, 1, 1}, {"the one", id, 1, 1}, {"one that is not there", id + 1, 0, 0}} {
		t.Run("runtime/"+c.name, func(t *testing.T) {
			f := &fake{world: world, rounds: 99}
			testOnce(t, New(f, Config{Slots: 4}, nil), c.thread, c.known, c.stacks)
			expect.True(t, f.unpinned == 0, "%d names asked for while FunctionIDs could die", f.unpinned)
		})
		t.Run("threads/"+c.name, func(t *testing.T) {
			f := &fakeThreads{fake: fake{world: world, rounds: 99}, primes: 1}
			testOnce(t, NewThreads(f, Config{Slots: 4}, nil), c.thread, c.known, c.stacks)
			expect.True(t, f.merged == 0 && f.suspended == 0,
				"%d names asked for while a thread stood still, %d left so", f.merged, f.suspended)
		})
	}
}

func testOnce(t *testing.T, a *Agent, thread clr.ThreadID, known, stacks int) {
	t.Helper()
	for n := range 3 {
		got := 0
		round := a.Once(thread, func(s *Stack) {
			got++
			expect.True(t, s.Merged.Gap == merge.GapNone && len(s.Frames) == 4 && s.Name == "worker" &&
				s.Table != nil, "gap %v, %d frames, thread %q", s.Merged.Gap, len(s.Frames), s.Name)
			name, module := a.Name(s.Frames[2].Function)
			expect.True(t, name != "" && module == "/app/t.dll", "the method is %q of %q", name, module)
		})
		expect.True(t, got == stacks && round.Known == known && round.Refused == "" &&
			round.Suspensions == uint64(stacks*(n+1)), "%d stacks, %+v", got, round)
	}
	expect.True(t, a.stream.Out.Len() == 0 && a.use == nil,
		"%d bytes are left, which no reader takes", a.stream.Out.Len())
}

// swapping is a process in which one library replaces another: an older table has the old library's name and
// unwind data.
type swapping struct {
	fakeThreads
	loads   uint64
	swap    int    // the Context call before which the swap happens, counted from 1
	again   bool   // every later Context call changes the modules again
	during  int    // changes during the build of a table
	tables  int    // tables built
	context int    // calls
	walked  uint64 // DoStackSnapshot calls with a seed from the old library
}

func (f *swapping) LoaderChanges() uint64 { return f.loads }

func (f *swapping) Context(slot int, c *clr.Capture) bool {
	f.context++
	if f.context == f.swap || f.again && f.context > f.swap {
		f.loads++
	}
	ok := f.fakeThreads.Context(slot, c)
	c.Loads = f.loads
	return ok
}

// Table describes the current modules. Before the swap, the native module is another one, whose functions
// have no frames.
func (f *swapping) Table() *module.Table {
	f.tables++
	if f.during > 0 {
		f.during--
		f.loads++
		return f.old()
	}
	if f.context >= f.swap {
		return f.fakeThreads.Table()
	}
	return f.old()
}

func (f *swapping) old() *module.Table {
	m := *f.world.Table.At(0)
	m.Path, m.CFI, m.ID = "/lib/old.so", nil, 99
	var managed []memory.Range
	for i := range f.world.Truth {
		if ip := f.world.Truth[i].IP; f.world.Table.IsManaged(ip) {
			managed = append(managed, memory.Range{Start: ip &^ 0xff, End: ip&^0xff + 0x100})
		}
	}
	return module.NewTable(7, []module.Module{m}, managed)
}

func (f *swapping) DoStackSnapshot(slot int, c *clr.Capture) {
	if c.Seeded && c.Seed.IP() != f.world.Truth[1].IP {
		f.walked++
	}
	f.fakeThreads.DoStackSnapshot(slot, c)
}

// TestSwappedModules: a sample never combines the registers of one moment with the modules of another.
func TestSwappedModules(t *testing.T) {
	for _, c := range []struct {
		name    string
		f       swapping
		samples int
		stale   uint64
		right   bool
	}{
		{"before the first sample", swapping{swap: 1}, 3, 1, true},
		{"at every sample", swapping{swap: 1, again: true}, 0, 5, true},
		{"while the table was made", swapping{swap: 0, during: 2}, 4, 0, true},
		{"never: the old one it stays", swapping{swap: 100}, 4, 0, false},
	} {
		f := &c.f
		f.loads = 5
		f.fakeThreads = fakeThreads{fake: fake{world: fs.Build(fs.Root, fs.Managed, fs.Native), rounds: 4}}
		m, reason := runHost(t, f)
		samples := m[wire.TypeSample]
		expect.True(t, len(samples) == c.samples && f.walked == 0,
			"%s: %d samples, %d walks of the CLR's from a wrong seed; %s", c.name, len(samples), f.walked,
			reason)
		for _, s := range samples {
			whole := s.(*wire.Sample).Gap == 0
			expect.Equal(t, whole, c.right, "%s: %+v", c.name, s)
			for _, fr := range s.(*wire.Sample).Frames {
				if fr.Kind == unwind.KindNative && (fr.Module == 99) == c.right {
					t.Errorf("%s: module %d", c.name, fr.Module)
				}
			}
		}
		expect.Equal(t, last(m[wire.TypeStats], "suspensions_stale"), c.stale,
			"%s: stale suspensions", c.name)
	}
}

// last returns the value of a figure that was sent last.
func last(stats []wire.Message, key string) (v uint64) {
	for _, m := range stats {
		if s := m.(*wire.Stats); s.Key == key {
			v = s.Value
		}
	}
	return v
}
