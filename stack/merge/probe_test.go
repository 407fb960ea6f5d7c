package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
)

// block makes frames from a string: l the C library's, r the runtime's wait, o other code of the runtime, s a
// signal frame, m an interrupted managed frame, c one that called.
func block(shape string) (out []Frame) {
	for i, c := range shape {
		f := Frame{IP: uint64(c) << 8, Kind: unwind.KindNative, Module: 1}
		switch c {
		case 'l':
			f.Module, f.IP = 0, uint64(i)
		case 's':
			f.Kind = unwind.KindSignal
		case 'm', 'c':
			f.Kind, f.Exact, f.Module = unwind.KindManaged, c == 'm', -1
		}
		out = append(out, f)
	}
	return out
}

func TestProbe(t *testing.T) {
	m := merger(fs.Build(fs.Root))
	for _, step := range []struct {
		name, shape string
		want        int
	}{
		{"an unknown wait is the program's", "llrRoc", 0},
		{"stopped by the runtime's signal: certain, and learned", "llrRosm", 6},
		{"the same wait in the helper that polls", "llrRoc", 5},
		{"the same wait deeper in the runtime", "llrRooc", 4},
		{"the same wait below the C library", "llrRlc", 4},
		{"another wait", "llqQoc", 0},
		{"a signal above native code is the program's", "llrRoslc", 4},
		{"a signal frame above a managed caller", "llxXosc", 0},
		{"managed on top", "mc", 0},
		{"a thread of the runtime's own", "llrRo", 4},
		{"the same, deep", "llrRoool", 4},
		{"a thread of the runtime's own in another wait", "llqQo", 0},
		{"in the runtime itself", "rRoc", 0},
		{"too short", "lrc", 0},
		{"nothing", "", 0},
	} {
		if got := m.probe(block(step.shape), clr.WakeUnknown); got != step.want {
			t.Errorf("%s: %d frames, want %d", step.name, got, step.want)
		}
	}
}

// hijackStub is the address of block's frames o.
type hijackStub struct{ at uint64 }

func (h hijackStub) InReturnHook(a unwind.Address) bool { return a.IP == h.at }

// A thread that went to the wait through a replaced return address: the stub belongs to the suspension too,
// and only the walker distinguishes it from other code of the runtime.
func TestProbeOfHijacks(t *testing.T) {
	for _, c := range []struct {
		name, shape string
		at          uint64
		want        int
	}{
		{"the stub", "llrRooc", 'o' << 8, 6},
		{"another function of the runtime", "llrRooc", 'p' << 8, 4},
		{"the stub above other code of the runtime", "llrRopc", 'o' << 8, 4},
		{"another wait in the stub", "llqQooc", 'o' << 8, 0},
	} {
		m := merger(fs.Build(fs.Root))
		m.probe(block("llrRosm"), clr.WakeUnknown) // the wait is learned
		m.hooks = hijackStub{c.at}
		if got := m.probe(block(c.shape), clr.WakeUnknown); got != c.want {
			t.Errorf("%s: %d frames, want %d", c.name, got, c.want)
		}
	}
}

// A wait counts as the suspension's if the end of suspensions ended it often enough, and always.
func TestProbeOfTheWoken(t *testing.T) {
	const woken, not, unknown = clr.Woken, clr.WakeNot, clr.WakeUnknown
	for _, c := range []struct {
		name  string
		wakes []clr.Wake
		want  int // of the last
	}{
		{"often enough", []clr.Wake{woken, woken, woken}, 5},
		{"once too few", []clr.Wake{woken, woken}, 0},
		{"left asleep once", []clr.Wake{woken, woken, not, woken, woken, woken}, 0},
		{"left asleep when it was believed", []clr.Wake{woken, woken, woken, woken, not, woken, woken, woken}, 0},
		{"left asleep at first", []clr.Wake{not, woken, woken, woken}, 0},
		{"nobody looked", []clr.Wake{unknown, unknown, unknown, unknown}, 0},
		{"nobody looked in between", []clr.Wake{woken, unknown, woken, unknown, woken}, 5},
		{"always asleep", []clr.Wake{not, not, not, not}, 0},
	} {
		m, got := merger(fs.Build(fs.Root)), 0
		for _, w := range c.wakes {
			m.probe(block("llqQoc"), woken) // another wait meanwhile
			got = m.probe(block("llrRoc"), w)
		}
		if got != c.want {
			t.Errorf("%s: %d frames, want %d", c.name, got, c.want)
		}
	}
}

// A certain wait is neither refuted nor replaced by an uncertain one.
func TestWaitsThatAreCertain(t *testing.T) {
	var w waits
	w.observe(wait{1, 1}, clr.WakeNot)
	w.learn(wait{1, 1})
	for i := range uint64(100) {
		w.observe(wait{i, 1}, clr.WakeNot)
	}
	if !w.has(wait{1, 1}) {
		t.Error("a wait that is certain is forgotten")
	}
}

func TestWaitsAreBounded(t *testing.T) {
	var w waits
	for i := range uint64(100) {
		w.learn(wait{i, i})
	}
	for i := range uint64(100) {
		w.observe(wait{i, 200}, clr.Woken)
	}
	if !w.has(wait{0, 0}) || w.has(wait{99, 99}) || w.has(wait{99, 200}) {
		t.Errorf("%v is remembered", w.known)
	}
}
