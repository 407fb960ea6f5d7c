package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestByExtension(t *testing.T) {
	for path, want := range map[string]string{
		"out/demo.pb.gz": "pprof", "a.pb": "pprof", "x.PPROF": "pprof", "demo.folded": "folded",
		"d.ir/x.html": "html", "X.HTM": "html",
		"a.json": "json", "a.otlp": "otlp", "a.otlp.json": "otlp-json", "a.firefox.json": "firefox",
		"a.trace.json": "trace", "a.speedscope.json": "speedscope", "a.txt": "text", "a": "",
		"a.gz": "", "json": "", "a.html/b": "",
	} {
		if f, ok := ByExtension(path); f.Name != want || ok != (want != "") {
			t.Errorf("ByExtension(%q) = %q, %v, want %q", path, f.Name, ok, want)
		}
	}
}

func TestByName(t *testing.T) {
	for _, want := range Formats() {
		for _, name := range []string{want.Name, strings.ToUpper(want.Name)} {
			f, ok := ByName(name)
			expect.True(t, ok && f.Name == want.Name && f.Write != nil && f.Description != "",
				"ByName(%q) = %+v, %v", name, f, ok)
		}
		for _, ending := range want.Extensions {
			f, _ := ByExtension("a" + ending)
			expect.Equal(t, f.Name, want.Name, "ByExtension(a%s)", ending)
		}
	}
	f, ok := ByName("svg")
	expect.True(t, !ok, "ByName(svg) = %v", f)
}

func TestBadIndices(t *testing.T) {
	frame := Frame{Name: "f", ModuleIndex: -1}
	for name, p := range map[string]*Profile{
		"frame too large": {Frames: []Frame{frame}, Threads: []Thread{{}},
			Stacks: []Stack{{Frames: []int32{1}}}},
		"frame negative": {Frames: []Frame{frame}, Threads: []Thread{{}},
			Stacks: []Stack{{Frames: []int32{-1}}}},
		"no such thread":     {Stacks: []Stack{{}}},
		"thread negative":    {Threads: []Thread{{}}, Stacks: []Stack{{Thread: -1}}},
		"no such module":     {Frames: []Frame{{}}},
		"module below minus": {Frames: []Frame{{ModuleIndex: -2}}},
	} {
		var e *IndexError
		err := p.Check()
		expect.True(t, errors.As(err, &e) && e.Error() != "", "%s: Check() = %v", name, err)
		for _, f := range Formats() {
			if f.Name == "text" && len(p.Stacks) == 0 {
				continue
			}
			err := f.Write(io.Discard, p)
			expect.True(t, errors.As(err, &e), "%s: %s wrote it: %v", name, f.Name, err)
		}
	}
}

// TestPprof reads what was written with pprof's own package and compares every
// stack with the profile.
func TestPprof(t *testing.T) {
	for name, p := range map[string]*Profile{"demo": handMade(), "accounted": accounted(),
		"large": large(300, 40), "empty": {}} {
		t.Run(name, func(t *testing.T) { comparePprof(t, p) })
	}
}

func comparePprof(t *testing.T, p *Profile) {
	for i, s := range newPprofWriter(p).profile().Sample { // readers drop an empty label, or read a number
		for key, values := range s.Label {
			expect.True(t, !slices.Contains(values, ""), "stack %d: the label %s is empty", i, key)
		}
	}
	got := must.Get(profile.ParseData(written(t, WritePprof, p)))(t)
	must.Do(t, got.CheckValid())
	must.True(t, len(got.Sample) == len(p.Stacks) && len(got.SampleType) == 4,
		"%d samples of %d values, want %d of 4", len(got.Sample), len(got.SampleType), len(p.Stacks))
	for i, s := range got.Sample {
		want := &p.Stacks[i]
		expect.Slices(t, s.Value, []int64{want.Count, want.WallNanos, want.CPUNanos, want.cpuCount()},
			"stack %d: values", i)
		th := p.Threads[want.Thread]
		if id := s.NumLabel["thread_id"]; (th.ID == 0) != (id == nil) || id != nil && id[0] != int64(th.ID) ||
			!slices.Equal(s.Label["thread_name"], threadNames(th.Name)) {
			t.Errorf("stack %d: labels %v %v, want %v", i, s.Label, s.NumLabel, th)
		}
		if g := s.Label["gap"]; (want.Gap == "") != (g == nil) || g != nil && g[0] != want.Gap {
			t.Errorf("stack %d: gap label %v, want %q", i, g, want.Gap)
		}
		if cause, ok := p.causeOf(want); ok != (s.Label[labelCause] != nil) ||
			ok && s.Label[labelCause][0] != cause {
			t.Errorf("stack %d: label of the cause %v, want %q", i, s.Label[labelCause], cause)
		}
		compareLocations(t, p, want, s.Location)
	}
}

// threadNames are the values of the label: profile.proto has no label with an empty string.
func threadNames(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func compareLocations(t *testing.T, p *Profile, want *Stack, got []*profile.Location) {
	t.Helper()
	if _, missing := unmarkedGap(p, want); missing {
		expect.Equal(t, got[len(got)-1].Line[0].Function.Name, gapName(want.Gap), "root")
		got = got[:len(got)-1]
	}
	must.Equal(t, len(got), len(want.Frames), "locations")
	for i, l := range got {
		f := &p.Frames[want.Frames[i]]
		name := f.Name
		if f.Doubtful && f.Class != ClassGap {
			name += " [doubtful]"
		} else if f.Class == ClassGap {
			name = gapName(f.Name)
		}
		if f.Unnamed() && !f.Doubtful {
			expect.True(t, len(l.Line) == 0 && l.Address == f.Addr && !l.Mapping.HasFunctions,
				"location of a frame without a name: %+v", l)
		} else if l.Line[0].Function.Name != name || l.Address != f.Addr {
			t.Errorf("location %s %#x, want %s %#x", l.Line[0].Function.Name, l.Address, name, f.Addr)
		}
		if f.ModuleIndex < 0 {
			continue
		}
		m := p.Modules[f.ModuleIndex]
		expect.True(t, l.Mapping != nil && l.Mapping.File == m.Path && l.Mapping.BuildID == m.BuildID &&
			l.Mapping.Start == m.Start && l.Mapping.Limit == m.End && l.Mapping.Offset == m.Offset,
			"mapping %+v, want %+v", l.Mapping, m)
	}
}

var hostileNames = []string{
	`</script><script>alert(1)</script>`, `<!-- <script>`, `a & b < c > d "quoted" 'single'`,
	"new\nline\r\ttab;semicolon 12", "\x1b[31mred\x1b]0;title\a",
	"bad \xff\xfe utf8", "\u202eright to left", "line\u2028separator", "]]>", "`${1+1}`", "{{data}}{{js}}",
	strings.Repeat("Very.Long.", 500) + "Name", "", "日本語.メソッド()", "\x00",
}

func hostile() *Profile {
	p := &Profile{Command: hostileNames, Runtime: hostileNames[0],
		Stats: Stats{Notes: hostileNames, ExitNote: hostileNames[4], Gaps: map[string]int64{}}}
	for i, n := range hostileNames {
		p.Frames = append(p.Frames,
			Frame{Name: n, Module: n, ModuleIndex: int32(i), Class: Class(i) % numClasses},
			Frame{Name: n, ModuleIndex: -1, Class: 200})
		p.Modules = append(p.Modules, Module{Path: n, BuildID: n})
		p.Threads = append(p.Threads, Thread{i, n})
		p.Stacks = append(p.Stacks,
			Stack{Thread: i, Frames: []int32{int32(2 * i), int32(2*i + 1), 0},
				Count: int64(i + 1), WallNanos: 1, Gap: n})
		p.Stats.Gaps[n]++
		p.Stats.Samples += int64(i + 1)
	}
	return p
}

// A hostile name cannot break the syntax of a format, and no control character gets through.
func TestHostileNames(t *testing.T) {
	p := hostile()
	for _, f := range Formats() {
		out := written(t, f.Write, p)
		if f.Name == "pprof" {
			_, err := profile.ParseData(out)
			expect.Equal(t, err, nil)
			continue
		}
		if f.Name == "otlp" { // TestOTLP reads it
			continue
		}
		expect.True(t, utf8.Valid(out), "%s: invalid UTF-8", f.Name)
		expect.True(t, !bytes.ContainsAny(out, "\x1b\x00\r\a"), "%s: a control character got through", f.Name)
	}
	folded := strings.Split(strings.TrimSuffix(string(written(t, WriteFolded, p)), "\n"), "\n")
	expect.True(t, len(folded) == len(p.Stacks), "folded: %d lines of %d stacks", len(folded), len(p.Stacks))
	for _, l := range folded {
		var n int64
		if i := strings.LastIndexByte(l, ' '); i < 0 {
			t.Errorf("folded: no count in %q", l)
		} else if _, err := fmt.Sscan(l[i:], &n); err != nil || n < 1 {
			t.Errorf("folded: count in %q: %v", l, err)
		}
	}
	for _, f := range []string{"json", "speedscope", "firefox"} {
		format, _ := ByName(f)
		expect.True(t, json.Valid(written(t, format.Write, p)), "%s: not JSON", f)
	}
}

// A stack that lacks frames shows a gap in every format for people.
func TestGapIsVisible(t *testing.T) {
	p := &Profile{Frames: []Frame{{Name: "leaf", ModuleIndex: -1}}, Threads: []Thread{{1, "t"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 3, Gap: "slot-full"}, {Count: 2, Complete: true}},
		Stats:  Stats{Samples: 5}}
	for _, f := range []string{"folded", "html", "speedscope", "firefox", "text"} {
		format, _ := ByName(f)
		out := string(written(t, format.Write, p))
		for _, want := range []string{"[gap: slot-full]", "[gap: no frames]"} {
			expect.True(t, strings.Contains(out, want), "%s: no %q", f, want)
		}
	}
}

func TestDoubtfulStaysApart(t *testing.T) {
	p := &Profile{Frames: []Frame{{Name: "f", ModuleIndex: -1}, {Name: "f", ModuleIndex: -1, Doubtful: true}},
		Threads: []Thread{{1, "t"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 3, Complete: true},
			{Frames: []int32{1}, Count: 2, Complete: true}}}
	expect.Equal(t, string(written(t, WriteFolded, p)), "f 3\nf [doubtful] 2\n", "folded")
}

// CPU time without samples counts as at least one sample.
func TestFoldedShortTime(t *testing.T) {
	p := &Profile{Frames: []Frame{{Name: "f", ModuleIndex: -1}, {Name: "g", ModuleIndex: -1}},
		Threads: []Thread{{1, "t"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 3, Complete: true},
			{Frames: []int32{1}, CPUNanos: 5, Complete: true}}}
	expect.Equal(t, string(written(t, WriteFolded, p)), "f 3\ng 1\n", "folded")
}

type failingWriter struct{ left int }

var errFull = errors.New("disk full")

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	for _, f := range Formats() {
		for _, room := range []int{0, 100} {
			err := f.Write(&failingWriter{room}, handMade())
			expect.True(t, errors.Is(err, errFull), "%s with room for %d bytes: %v", f.Name, room, err)
		}
	}
}

// A mapping is marked as symbolized only if all of its frames have names, so that `pprof
// -symbolize` and others look for the rest.
func TestPprofUnnamed(t *testing.T) {
	p := &Profile{Threads: []Thread{{1, "main"}},
		Modules: []Module{{Path: "/lib/a.so", BuildID: "aa"}, {Path: "/lib/b.so", BuildID: "bb"}},
		Frames: []Frame{
			{Name: "a.so+0x10", Module: "a.so", ModuleIndex: 0, Addr: 0x1010, Class: ClassRuntime},
			{Name: "named", Module: "a.so", ModuleIndex: 0, Addr: 0x1020, Class: ClassRuntime},
			{Name: "b.so+0x10", Module: "b.so", ModuleIndex: -1, Class: ClassManaged},
			{Name: "other", Module: "b.so", ModuleIndex: 1, Addr: 0x2020, Class: ClassNative}},
		Stacks: []Stack{{Frames: []int32{0, 1, 2, 3}, Count: 1, WallNanos: 1, Complete: true}}}
	got := must.Get(profile.ParseData(written(t, WritePprof, p)))(t)
	expect.True(t, !got.Mapping[0].HasFunctions && got.Mapping[1].HasFunctions,
		"mappings %+v %+v", got.Mapping[0], got.Mapping[1])
	for i, lines := range []int{0, 1, 1, 1} {
		l := got.Sample[0].Location[i]
		expect.True(t, len(l.Line) == lines, "location %d has %d lines", i, len(l.Line))
	}
	for _, f := range got.Function {
		expect.True(t, !strings.Contains(f.Name, "a.so+0x"), "an invented function %q", f.Name)
	}
}

// A recording of one system is shown on another.
func TestBase(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/libc.so.6": "libc.so.6", "libc.so.6": "libc.so.6", "[vdso]": "[vdso]",
		`C:\windows\system32\ntdll.dll`: "ntdll.dll", `\\server\share\coreclr.dll`: "coreclr.dll",
		`Z:\`: "", "coreclr.dll": "coreclr.dll",
	} {
		expect.Equal(t, Base(path), want, path)
	}
}
