package recording

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// messages are of one process: every type that a profile uses.
func messages(n int) []wire.Message {
	all := []wire.Message{
		&wire.Hello{PID: 7, Arch: "amd64", Runtime: ".NET 9.0.5", StartUnixNano: 1e9, RateMilliHz: 99000},
		&wire.Module{ID: 1, Start: 0x1000, End: 0x9000, Bias: 0x1000, Path: "/lib/a.so", BuildID: "ab"},
		&wire.Method{ID: 2, Name: "App.Main", Module: "App.dll"}, &wire.Thread{TID: 1, Name: "main"},
		&wire.GapName{Code: 3, Name: "odd"}, &wire.Line{Addr: 0x5000, File: "a.cs", Line: 7},
	}
	for i := range n {
		gap := uint8(i % 2 * 3)
		all = append(all, &wire.Sample{TID: 1, TimeUnixNano: int64(1e9 + i*1e7),
			WallNanos: 1e7, CPUNanos: 1e7, Gap: gap,
			Frames: []wire.Frame{{Kind: unwind.KindNative, Module: 1, IP: 0x1500 + uint64(i)},
				{Kind: unwind.KindManaged, Method: 2, IP: 0x5001}}})
	}
	return append(all,
		&wire.Event{TID: 1, TimeUnixNano: 2e9, Kind: wire.EventException, Name: "E", Text: "x"},
		&wire.Usage{TID: 1, CPUNanos: 3e7}, &wire.Usage{CPUNanos: 4e7, Cause: wire.CauseShort},
		&wire.Stats{Key: wire.StatLost, Value: 2}, &wire.Note{Text: "note"}, &wire.Bye{Reason: "ended"})
}

var info = collect.Info{Command: []string{"app", "1"}, RateHz: 99, Start: time.Unix(1, 0).UTC(),
	Events: []export.Event{export.EventException},
	Way:    "probe", WayWhy: "because", ExitNote: "exit code 3", Notes: []string{"other note"}}

// written returns a recording of two processes, and the profile that it must give.
func written(t *testing.T, n int) ([]byte, *export.Profile) {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	var all []*collect.Process
	for number := range uint64(2) {
		p := collect.NewProcess(7+int(number), "app")
		w.Process(number+1, p)
		for _, m := range messages(n) {
			w.Message(number+1, m)
			p.Take(m)
		}
		all = append(all, p)
	}
	keeper := NewKeeper(namer{})
	want := collect.Build(&info, all, keeper)
	keeper.Write(w)
	w.Info(&info)
	must.Do(t, w.End())
	return out.Bytes(), want
}

type namer struct{}

func (namer) Name(path, _ string, addr uint64) (string, bool) { return "f" + path, addr%2 == 0 }

func (namer) Function(_, _ string, addr uint64) (start, end uint64, ok bool) {
	return addr &^ 15, addr | 15, addr%3 == 0
}

func (namer) Line(_, _ string, addr uint64) (file string, line int) {
	if addr%5 != 0 {
		return "", 0
	}
	return "a.c", int(addr)
}

// A recording that is read again gives the profile that was written, names included.
func TestRoundTrip(t *testing.T) {
	b, want := written(t, 40)
	got, err := Read(bytes.NewReader(b))
	must.True(t, err == nil && got.Damage == nil && got.Complete, "%v %v", err, got)
	cmptest.Same(t, want, collect.Build(&got.Info, got.Processes, &got.Names))
	expect.True(t, got.Info.Command[0] == "app" && got.Info.ExitNote == "exit code 3", "%+v", got.Info)
}

// A name from symbols replaces a recorded role, but not a recorded name.
func TestRoleIsReplaced(t *testing.T) {
	n := Names{byAddr: map[key]*Name{{"/a", "", 2}: {Name: "[first use]"}, {"/a", "", 4}: {Name: "New"},
		{"/a", "", 3}: {Name: "[first use]"}}}
	for addr, want := range map[uint64]string{2: "[first use]", 4: "New"} {
		got, _ := n.Name("/a", "", addr)
		expect.True(t, got == want, "%d: %q, want %q", addr, got, want)
	}
	n.Next = namer{}
	for addr, want := range map[uint64]string{2: "f/a", 3: "[first use]", 4: "New"} {
		got, _ := n.Name("/a", "", addr)
		expect.True(t, got == want, "%d with another source: %q, want %q", addr, got, want)
	}
}

// A recording that is cut or damaged gives everything before the damage, and its offset.
func TestDamage(t *testing.T) {
	b, _ := written(t, 40000)
	whole, err := Read(bytes.NewReader(b))
	must.True(t, err == nil && whole.Damage == nil, "%v %v", err, whole.Damage)
	all := whole.Processes[0].Counts().Samples + whole.Processes[1].Counts().Samples
	for _, at := range []int{9, 15, 100, len(b) / 4, len(b) / 2, len(b) - 1} {
		cut, err := Read(bytes.NewReader(b[:at]))
		var damage *DamageError
		if err != nil || cut.Complete || !errors.As(cut.Damage, &damage) || damage.Offset > int64(at) {
			t.Errorf("cut at %d: %v, %+v", at, err, cut)
			continue
		}
		flipped := bytes.Clone(b)
		flipped[at] ^= 0x10
		bad, err := Read(bytes.NewReader(flipped))
		expect.True(t, err == nil && errors.As(bad.Damage, &damage) && damage.Offset <= int64(at),
			"bit flipped at %d: %v, %v", at, err, bad.Damage)
		var some int64
		for _, p := range bad.Processes {
			some += p.Counts().Samples
		}
		if some > all || at < len(b)-1 && some == all || at > len(b)/3 && some == 0 {
			t.Errorf("bit flipped at %d: %d of %d samples", at, some, all)
		}
	}
}

// Files of other kinds are refused. The error for a newer recording names its version.
func TestRefused(t *testing.T) {
	for _, text := range []string{"", "S", "SWREC\r", "\x1f\x8b plain gzip", "{}\n      "} {
		_, err := Read(bytes.NewReader([]byte(text)))
		expect.True(t, errors.Is(err, ErrFormat), "%q: %v", text, err)
	}
	var version *wire.VersionError
	_, err := Read(bytes.NewReader([]byte("SWREC\r\n\x09")))
	expect.True(t, errors.As(err, &version) && version.Got == 9, "%v", err)
}

type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// A full disk is reported, and nothing is written after it.
func TestWriteError(t *testing.T) {
	out := &failing{n: 1}
	w := NewWriter(out)
	w.Process(1, collect.NewProcess(1, "p"))
	expect.Equal(t, w.Flush(), io.ErrShortWrite)
	w.Message(1, &wire.Note{})
	err := w.End()
	expect.True(t, err == io.ErrShortWrite && out.n == -1, "%v %v", err, out.n)
}

// A Writer between two blocks holds little: the agent has one for each process, for hours.
func TestWritersAreSmall(t *testing.T) {
	const writers, most = 64, 32 << 10
	var all [writers]*Writer
	before := liveBytes()
	for i := range all {
		all[i] = NewWriter(io.Discard)
		all[i].Message(1, &wire.Thread{TID: 1, Name: "main"})
		must.Do(t, all[i].Flush())
	}
	each := (liveBytes() - before) / writers
	expect.True(t, each <= most, "%d bytes each, of %d", each, most)
	runtime.KeepAlive(&all)
}

// liveBytes is the size of all objects that are reachable.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // a pool keeps what is in it for one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
