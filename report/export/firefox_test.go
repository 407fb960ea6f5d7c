package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export/firefox"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// readFirefox reads a file and checks what the documentation of the format says of every file.
func readFirefox(t *testing.T, p *Profile) *firefox.File {
	t.Helper()
	b := written(t, WriteFirefox, p)
	var any map[string]any
	var f firefox.File
	must.Do(t, json.Unmarshal(b, &any))
	columns(t, "file", any)
	must.Do(t, json.Unmarshal(b, &f))
	s := &f.Shared
	inside(t, "frame function", s.Frames.Func, s.Funcs.Length)
	inside(t, "frame category", s.Frames.Category, len(f.Meta.Categories))
	inside(t, "function name", s.Funcs.Name, len(s.Strings))
	inside(t, "function source", present(s.Funcs.Source), s.Sources.Length)
	inside(t, "function resource",
		slices.DeleteFunc(slices.Clone(s.Funcs.Resource), func(r int) bool { return r == -1 }),
		s.Resources.Length)
	inside(t, "resource library", s.Resources.Lib, len(f.Libs))
	inside(t, "stack frame", s.Stacks.Frame, s.Frames.Length)
	for i, caller := range s.Stacks.Prefix {
		if caller != nil {
			inside(t, "caller", []int{*caller}, i)
		}
	}
	for _, th := range f.Threads {
		inside(t, "stack", present(th.Samples.Stack), s.Stacks.Length)
		expect.True(t, slices.IsSorted(th.Samples.Time), "times of %s are not in order", th.Name)
		inside(t, "marker name", th.Markers.Name, len(s.Strings))
		for _, d := range th.Markers.Data {
			inside(t, "marker text", []int{d.Name}, len(s.Strings))
		}
	}
	return &f
}

// columns checks that no list is null, and that all columns of a table have its length.
func columns(t *testing.T, path string, table map[string]any) {
	for name, v := range table {
		switch v := v.(type) {
		case map[string]any:
			columns(t, path+"."+name, v)
		case []any:
			if n, ok := table["length"]; ok && n != float64(len(v)) {
				t.Errorf("%s.%s has %d values, length is %v", path, name, len(v), n)
			}
			for _, e := range v {
				if sub, ok := e.(map[string]any); ok {
					columns(t, path+"."+name, sub)
				}
			}
		case nil:
			expect.True(t, slices.Contains([]string{"processShutdownTime", "unregisterTime", "codeId"}, name),
				"%s.%s is null", path, name)
		}
	}
}

func present(column []*int) (out []int) {
	for _, v := range column {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out
}

func inside(t *testing.T, what string, column []int, limit int) {
	t.Helper()
	for _, v := range column {
		must.True(t, v >= 0 && v < limit, "%s %d of %d", what, v, limit)
	}
}

// callers returns the names of a stack, leaf first.
func callers(f *firefox.File, stack *int) (out []string) {
	for s := &f.Shared; stack != nil; stack = s.Stacks.Prefix[*stack] {
		out = append(out, s.Strings[s.Funcs.Name[s.Frames.Func[s.Stacks.Frame[*stack]]]])
	}
	return out
}

// Samples have their times, wall time as weight, and CPU time. Time without samples has no stack.
func TestFirefoxSamples(t *testing.T) {
	p := timed()
	p.Stacks = append(p.Stacks,
		Stack{Thread: 1, Frames: []int32{2}, Count: 1, Event: EventLock, Type: "a lock"})
	p.Waits = []Wait{{Stack: 3, Start: p.Start.Add(100 * time.Millisecond), Nanos: 5e7}}
	f := readFirefox(t, p)
	expect.True(t, f.Meta.Start == 1e6 && f.Meta.Processed == 62 && f.Meta.Categories[0].Color == "grey" &&
		len(f.Threads) == 2, "%+v", f.Meta)
	a, b := &f.Threads[0].Samples, &f.Threads[1]
	var wall float64
	var cpu int64
	for i := range a.Length {
		wall, cpu = wall+a.Weight[i], cpu+a.CPU[i]
		name := fmt.Sprint(callers(f, a.Stack[i]))
		want := [...]string{"[]", "[f]", "[]", "[g]"}[i%2+i/50*2]
		must.True(t, name == want && a.Time[i] == float64(10*i+10),
			"sample %d at %v is %s, want %s", i, a.Time[i], name, want)
	}
	expect.True(t, wall == 500 && cpu == 75e7 && a.WeightType == "tracing-ms" && a.Length == 100,
		"%v ms, %d ns CPU, %s, %d samples", wall, cpu, a.WeightType, a.Length)
	d := cmptest.Diff([]float64{200, 800}, b.Samples.Time)
	expect.True(t, d == "" && b.Samples.Weight[1] == 600 && b.Samples.CPU[1] == 0 &&
		b.Samples.Stack[0] == nil, "%s %+v", d, b.Samples)
	m := &b.Markers
	expect.True(t, m.Length == 1 && m.Start[0] == 100 && m.End[0] == 150 &&
		f.Shared.Strings[m.Name[0]] == "lock" && f.Shared.Strings[m.Data[0].Name] == "a lock", "%+v", m)
}

// Frames have addresses in their libraries, lines, and classes. Without times, each stack is
// a sample with all its weight.
func TestFirefoxFrames(t *testing.T) {
	p := handMade()
	p.Frames[4].File, p.Frames[4].Line = "/src/fib.cs", 12
	f := readFirefox(t, p)
	s := &f.Shared
	stack := f.Threads[0].Samples.Stack[0]
	d := cmptest.Diff([]string{"Demo.Fib.Compute(int)", "Demo.Fib.Compute(int)", "Demo.Fib.Compute(int)",
		"Demo.Program.Main(string[])", "coreclr_execute_assembly", "main", "_start"},
		callers(f, stack))
	expect.True(t, d == "", "%v", d)
	leaf := s.Stacks.Frame[*stack]
	expect.True(t, s.Strings[s.Sources.Filename[*s.Funcs.Source[s.Frames.Func[leaf]]]] == "/src/fib.cs" &&
		*s.Frames.Line[leaf] == 12 && s.Frames.Address[leaf] == -1 &&
		f.Meta.Categories[s.Frames.Category[leaf]].Name == "managed",
		"the leaf lacks its source or class: %+v", s.Frames)
	at := slices.Index(s.Frames.Address, 0x1020)
	if at < 0 || f.Libs[s.Resources.Lib[s.Funcs.Resource[s.Frames.Func[at]]]].Path != "/usr/bin/dotnet" {
		t.Errorf("no _start at 0x1020 of dotnet: %v", s.Frames.Address)
	}
	var wall float64
	for _, th := range f.Threads {
		for _, w := range th.Samples.Weight {
			wall += w
		}
	}
	expect.Equal(t, wall, 10000, "ms in all")
	readFirefox(t, &Profile{})
}

// The debug ID of samply for this build ID.
func TestDebugID(t *testing.T) {
	for buildID, want := range map[string]string{"510d0a5c19eadf8043f203b4525be9be3dcb9554": "5C0A0D51EA1980DF43F203B4525BE9BE0",
		"": "", "x": "", "aa01": "000001AA0000000000000000000000000"} {
		expect.Equal(t, debugID(buildID), want, buildID)
	}
}

// A wait until the end of the recording surrounds the samples of a thread that wakes meanwhile. The
// weights are the wall time of the other formats, and the time before these samples has the wait's stack.
func TestFirefoxWaitAroundSamples(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int64) int64 { return start.UnixNano() + ms*1e6 }
	p := &Profile{Start: start, Threads: []Thread{{1, "main"}},
		Frames: []Frame{{Name: "wait", ModuleIndex: -1}, {Name: "work", ModuleIndex: -1}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 2, WallNanos: 1090e6, Complete: true},
			{Frames: []int32{1}, Count: 2, WallNanos: 6e6, CPUNanos: 6e6, Complete: true}},
		Samples: []Sample{{Stack: 0, At: at(100), Wall: 90e6}, {Stack: 1, At: at(900), Wall: 3e6, CPU: true},
			{Stack: 1, At: at(1000), Wall: 3e6, CPU: true},
			{Stack: 0, At: at(1100), Wall: 1000e6}}}
	for _, c := range []struct {
		name         string
		since, until time.Duration
		want         string // times and stacks: 0 wait, 1 work, - none
		wall         float64
	}{
		{"all", 0, 0, "10- 100:0 897:0 900:1 997:0 1000:1 1100:0", 1096},
		{"a part", 50 * time.Millisecond, 950 * time.Millisecond, "50:0 847:0 850:1 900:0", 903},
	} {
		q := p
		if c.until != 0 {
			var err error
			q, err = p.Select(Selection{Since: c.since, Until: c.until})
			must.Do(t, err)
		}
		s, sum := readFirefox(t, q).Threads[0].Samples, 0.0
		var got []string
		for i, w := range s.Weight {
			sum += w
			if text := fmt.Sprintf("%.0f-", s.Time[i]); s.Stack[i] == nil {
				got = append(got, text)
			} else {
				got = append(got, fmt.Sprintf("%.0f:%d", s.Time[i], *s.Stack[i]))
			}
		}
		expect.True(t, fmt.Sprint(got) == "["+c.want+"]" && sum == c.wall,
			"%s: %v, %v ms, want %s, %v", c.name, got, sum, c.want, c.wall)
	}
}
