package agent

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// fake is a process with one made-up stack. It stops after some rounds.
type fake struct {
	world  *fs.World
	rounds int
	events []EventKind
	// events that arrive just before the modules are pinned
	beforePin []EventKind
	pinned    bool
	unpinned  int // names requested while not pinned
	asked     int // names requested
	lines     bool
	cpu       uint64 // of every thread, nanoseconds
	now       int64
}

// unreadable is memory in which every read fails.
type unreadable struct{}

func (unreadable) ReadAt([]byte, uint64) bool { return false }

func (f *fake) SuspendRuntime() clr.HRESULT           { f.rounds--; return clr.S_OK }
func (f *fake) ResumeRuntime() clr.HRESULT            { return clr.S_OK }
func (f *fake) Enter()                                {}
func (f *fake) Leave()                                {}
func (f *fake) Alive(clr.Thread) bool                 { return true }
func (f *fake) Ask(int, clr.Thread)                   {}
func (f *fake) Await(_ int, c *clr.Capture)           { *c = f.world.Capture }
func (f *fake) Late(int, *clr.Capture)                {}
func (f *fake) DoStackSnapshot(_ int, c *clr.Capture) { *c = f.world.Capture }
func (f *fake) Now() int64                            { return f.now }
func (f *fake) Pause(int64)                           {}
func (f *fake) LoaderChanges() uint64                 { return 1 }
func (f *fake) ThreadCPU(uint64) uint64               { return f.cpu }
func (f *fake) Prime(clr.ThreadID)                    {}
func (f *fake) Unpin()                                { f.pinned = false }
func (f *fake) Stopping() bool                        { return f.rounds <= 0 }
func (f *fake) PID() uint64                           { return 77 }
func (f *fake) Arch() context.Arch                    { return f.world.Arch }
func (f *fake) Table() *module.Table                  { return f.world.Table }
func (f *fake) ThreadName(uint64) string              { return "kernel's" }
func (f *fake) Memory() (memory.Reader, error)        { return unreadable{}, nil }
func (f *fake) Version() string                       { return ".NET 9.9.9" }
func (f *fake) Threads(buf []Thread) []Thread {
	return append(buf, Thread{f.world.Capture.Thread, "worker"})
}
func (f *fake) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return f.world.FunctionFromIP(ip)
}

func (f *fake) Forget()                {}
func (f *fake) Images() *naming.Images { return nil }

func (f *fake) Source(id clr.FunctionID, addr uint64, il bool) (s Source, ok bool) {
	s.IL, s.File, s.Line = uint32(addr&0xff), "/a.cs", int(id)
	return s, f.lines
}

func (f *fake) FunctionName(id clr.FunctionID) (name demangle.MethodName, module string, ok bool) {
	f.asked++
	if !f.pinned {
		f.unpinned++
	}
	return demangle.MethodName{Name: "T+<>c.<Main>b__0"}, "/app/t.dll", id != 0x1002
}

func (f *fake) Pin() {
	f.pinned = true
	f.events, f.beforePin = append(f.events, f.beforePin...), nil
}

func (f *fake) Event() (EventKind, bool) {
	if len(f.events) == 0 {
		return 0, false
	}
	e := f.events[0]
	f.events = f.events[1:]
	return e, true
}

// run runs an agent on the fake and returns its stream.
func run(t *testing.T, f *fake, cfg Config) (stream []byte, reason string) {
	t.Helper()
	var out bytes.Buffer
	a := New(f, cfg, func(b []byte) error { out.Write(b); return nil })
	reason = a.Run()
	return out.Bytes(), reason
}

func messages(t *testing.T, stream []byte) map[wire.Type][]wire.Message {
	t.Helper()
	out := map[wire.Type][]wire.Message{}
	for r := wire.NewReader(bytes.NewReader(stream)); ; {
		m, err := r.Next()
		if err == io.EOF {
			return out
		}
		must.Do(t, err)
		out[m.Type()] = append(out[m.Type()], m)
	}
}

func TestStream(t *testing.T) {
	for _, arch := range context.Arches {
		t.Run(arch.String(), func(t *testing.T) { testStream(t, arch) })
	}
}

func testStream(t *testing.T, arch context.Arch) {
	f := &fake{world: fs.BuildFor(arch, fs.Root, fs.Managed, fs.Managed, fs.Native), rounds: 3}
	stream, reason := run(t, f, Config{RateHz: 1e6, Slots: 4})
	m := messages(t, stream)
	expect.True(t, reason == "the process ended" && len(m[wire.TypeBye]) == 1,
		"reason %q, %d byes", reason, len(m[wire.TypeBye]))
	h := m[wire.TypeHello][0].(*wire.Hello)
	expect.True(t, h.Runtime == ".NET 9.9.9" && h.PID == 77 && h.Arch == arch.GOARCH(), "hello %+v", h)
	must.Equal(t, len(m[wire.TypeSample]), 3, "samples")
	if len(m[wire.TypeModule]) != 1 || len(m[wire.TypeThread]) != 1 || len(m[wire.TypeMethod]) != 2 {
		t.Errorf("%d modules, %d threads, %d methods; each once", len(m[wire.TypeModule]),
			len(m[wire.TypeThread]), len(m[wire.TypeMethod]))
	}
	expect.Equal(t, len(m[wire.TypeGapName]), merge.GapCount-1, "gap names")
	checkSample(t, f.world, m[wire.TypeSample][0].(*wire.Sample))
	checkMethods(t, m[wire.TypeMethod])
	expect.True(t, f.unpinned == 0 && f.asked == 2,
		"%d names asked, %d of them while FunctionIDs could die", f.asked, f.unpinned)
}

// When the tool closes its side, the last figures are sent at once, even if the next round is far away.
func TestToolWantsNoMore(t *testing.T) {
	for _, rate := range []float64{1e6, 0.001} {
		f := &fake{world: fs.Build(fs.Root, fs.Managed), rounds: 1000}
		stream, reason := run(t, f,
			Config{RateHz: rate, Slots: 4, Ended: func() bool { return f.rounds < 1000 }})
		m := messages(t, stream)
		stats := m[wire.TypeStats]
		must.True(t, reason == "the tool wants no more" && len(m[wire.TypeBye]) == 1 &&
			len(m[wire.TypeSample]) == 1 && len(stats) > 0,
			"reason %q, %d byes, %d samples, %d figures", reason, len(m[wire.TypeBye]),
			len(m[wire.TypeSample]), len(stats))
		var ticks uint64
		for _, s := range stats {
			if s := s.(*wire.Stats); s.Key == wire.StatTicks {
				ticks = s.Value
			}
		}
		expect.Equal(t, ticks, 1, "reported rounds")
	}
}

func checkSample(t *testing.T, w *fs.World, s *wire.Sample) {
	t.Helper()
	must.True(t, s.Gap == 0 && len(s.Frames) == len(w.Truth),
		"gap %d, %d frames, want %d", s.Gap, len(s.Frames), len(w.Truth))
	for i := range s.Frames {
		g, f := &s.Frames[i], &w.Truth[i]
		managed := g.Kind == unwind.KindManaged
		expect.True(t, g.IP == f.IP && g.Kind == f.UnwindKind() && g.Exact() == f.Exact &&
			managed == (g.Method != 0) && managed != (g.Module != 0), "frame %d = %+v, want %+v", i, g, f)
	}
}

func checkMethods(t *testing.T, methods []wire.Message) {
	t.Helper()
	want := map[uint64]string{0x1001: "T.Main (lambda)", 0x1002: "method 0x1002"}
	for _, m := range methods {
		if m := m.(*wire.Method); want[m.FunctionID] != m.Name {
			t.Errorf("method %#x is %q, want %q", m.FunctionID, m.Name, want[m.FunctionID])
		}
	}
}

// FunctionIDs become invalid with their module. After an unload, every name is requested again, also if it
// happens just before the agent holds up unloads.
func TestUnloadForgetsNames(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed), rounds: 3}
	a := New(f, Config{RateHz: 1e6, Slots: 1}, func([]byte) error { return nil })
	for i, want := range []int{1, 1, 2, 3} {
		switch i {
		case 2:
			f.events = []EventKind{EventModuleUnload}
		case 3:
			f.beforePin = []EventKind{EventModuleUnload}
		}
		if err := a.round(); err != nil || f.asked != want {
			t.Errorf("round %d: asked %d names, want %d, %v", i, f.asked, want, err)
		}
	}
}

// When a walk meets unknown code, the agent reads the mappings again at once.
func TestUnknownCodeRefreshesTheTable(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed, fs.Native), rounds: 1}
	tables := []*module.Table{module.NewTable(1, nil, nil), fs.Table(2)}
	var out bytes.Buffer
	a := New(f, Config{RateHz: 1e6, Slots: 1}, func(b []byte) error { out.Write(b); return nil })
	a.tables.build = func() *module.Table {
		next := tables[0]
		if len(tables) > 1 {
			tables = tables[1:]
		}
		a.tables.read = a.tables.read.Add(-1)
		return next
	}
	a.tables.refresh(a, false)
	a.tables.read = a.tables.read.Add(-tableRefresh)
	must.Do(t, a.round())
	samples := messages(t, out.Bytes())[wire.TypeSample]
	s := samples[0].(*wire.Sample)
	expect.True(t, s.Gap == 0 && len(s.Frames) == 3, "%+v", s)
}

func TestToolGone(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed), rounds: 100}
	n := 0
	a := New(f, Config{RateHz: 1e6, Slots: 1}, func([]byte) error {
		if n++; n > 2 {
			return errors.New("broken pipe")
		}
		return nil
	})
	if got := a.Run(); got != "the tool is gone: broken pipe" || f.rounds < 90 {
		t.Errorf("%q with %d rounds to go", got, f.rounds)
	}
}

func TestRawUnwritable(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed), rounds: 1}
	stream, _ := run(t, f, Config{RateHz: 1e6, Slots: 1, Raw: filepath.Join(t.TempDir(), "no", "such")})
	notes := messages(t, stream)[wire.TypeNote]
	expect.True(t, len(notes) == 1, "%d notes, want one that says why", len(notes))
}

// The source line of each managed address is sent once, before the first sample that contains it.
func TestSampleLines(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native), rounds: 3, lines: true}
	stream, _ := run(t, f, Config{RateHz: 1e6, Slots: 4})
	told, samples := map[uint64]int{}, 0
	for r := wire.NewReader(bytes.NewReader(stream)); ; {
		m, err := r.Next()
		if err != nil {
			break
		}
		switch m := m.(type) {
		case *wire.Line:
			if told[m.Addr]++; m.File != "/a.cs" || m.Line != 0x1001 && m.Line != 0x1002 {
				t.Errorf("%+v", m)
			}
		case *wire.Sample:
			samples++
			for i := range m.Frames {
				if g := &m.Frames[i]; g.Method != 0 && told[g.Addr()] != 1 {
					t.Errorf("sample %d: %#x told %d times", samples, g.Addr(), told[g.Addr()])
				}
			}
		}
	}
	expect.True(t, samples == 3 && len(told) >= 2, "%d samples, lines of %d addresses", samples, len(told))
}

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

var litter []byte

// littering allocates so much in each round that a garbage collection is due, and checks whether one ran
// while a thread was suspended.
type littering struct {
	fakeThreads
	at       uint32
	inWindow int
}

func (f *littering) Threads(buf []Thread) []Thread {
	litter = make([]byte, 16<<20)
	return f.fakeThreads.Threads(buf)
}

func (f *littering) Suspend(i int, t clr.Thread) clr.SuspendStatus {
	f.at = collections()
	return f.fakeThreads.Suspend(i, t)
}

func (f *littering) Resume(i int, t clr.Thread) {
	f.inWindow += int(collections() - f.at)
	f.fakeThreads.Resume(i, t)
}

func TestGarbageBetweenSuspensions(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f := &littering{fakeThreads: fakeThreads{fake: fake{world: fs.Build(fs.Root, fs.Managed, fs.Native),
		rounds: 20}}}
	begin := collections()
	NewThreads(f, Config{RateHz: 1e6, Slots: 4}, func([]byte) error { return nil }).Run()
	if n := collections() - begin; n < 5 || f.inWindow != 0 {
		t.Errorf("%d collections, %d of them while a thread was suspended", n, f.inWindow)
	}
}

// list is a naming.Names with one method.
type list struct{ naming.Method }

func (l *list) Desc(uint64) (naming.Method, bool) { return l.Method, true }

// The runtime's tables give a method its type arguments only if they have the same method.
func TestInstance(t *testing.T) {
	full := naming.Method{MethodName: demangle.MethodName{Name: "List.Add", TypeArgs: []string{"int"}}}
	c := Contracts{inUse: true, names: &list{full}}
	for name, want := range map[string]int{"List.Add": 1, "List.Remove": 0} {
		m := demangle.MethodName{Name: name}
		c.instance(&naming.Images{}, 1, &m)
		expect.True(t, m.Name == name && len(m.TypeArgs) == want, "%s: %+v", name, m)
	}
}
