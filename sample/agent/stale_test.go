package agent

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

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

func (f *swapping) swapped() bool { return f.context >= f.swap }

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
	if f.swapped() {
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
		if len(samples) != c.samples || f.walked != 0 {
			t.Errorf("%s: %d samples, %d walks of the CLR's from a wrong seed; %s", c.name, len(samples), f.walked, reason)
		}
		for _, s := range samples {
			whole := s.(*wire.Sample).Gap == 0
			if whole != c.right {
				t.Errorf("%s: %+v", c.name, s)
			}
			for _, fr := range s.(*wire.Sample).Frames {
				if fr.Kind == unwind.KindNative && (fr.Module == 99) == c.right {
					t.Errorf("%s: module %d", c.name, fr.Module)
				}
			}
		}
		if got := last(m[wire.TypeStats], "suspensions_stale"); got != c.stale {
			t.Errorf("%s: %d stale suspensions, want %d", c.name, got, c.stale)
		}
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
