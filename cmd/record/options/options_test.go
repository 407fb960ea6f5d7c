package options

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestNoLibrary(t *testing.T) {
	const plain, arm = "--mode snapshot needs the profiler library " + LibraryName,
		"not supported on ARM64"
	missing := &fs.PathError{Op: "stat", Path: "/p.so", Err: fs.ErrNotExist}
	for _, c := range []struct {
		name, system string
		mode         Mode
		why          string
		err          error
		want         []string
	}{
		{"x86-64", "linux/amd64", ModeSnapshot, "", missing, []string{plain, "build it"}},
		{"ARM64", "linux/arm64", ModeSnapshot, "", missing, []string{arm, "without --mode"}},
		{"ARM64, not wanted", "linux/arm64", ModeSnapshot, "there is no probe", missing,
			[]string{arm, "it is needed: there is no probe", ".NET 9 or later"}},
		{"ARM64, the probe's", "linux/arm64", ModeProbe, "", missing,
			[]string{"the probe cannot be read", "leave out --probe"}},
		{"ARM64, one's own", "linux/arm64", ModeSnapshot, "",
			&fs.PathError{Op: "stat", Path: "/p.so", Err: fs.ErrPermission}, []string{plain}},
		{"Windows on ARM64", "windows/arm64", ModeSnapshot, "", missing, []string{plain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Profiler: "/p.so", Mode: c.mode, modeWhy: c.why}
			got := o.noLibrary(c.system, c.err)
			for _, want := range c.want {
				text := got.Error()
				expect.True(t, strings.Contains(text, want) && !strings.Contains(text, "\n") &&
					got.Code == 125, "code %d, %q, want %q in one line", got.Code, text, want)
			}
		})
	}
}

func TestChildEnviron(t *testing.T) {
	opt := Options{Rate: 12.5, Profiler: "/p.so", Raw: "/raw", StackBytes: 4096,
		Env: []string{"A=1", "CORECLR_ENABLE_PROFILING=0",
			"CORECLR_PROFILER_PATH_64=/other.so", "DOTNET_PROFILER={x}",
			"SEEDWALK_SOCKET=/old", "DOTNET_TieredPGO=0"}}
	got := ChildEnviron(&opt, "/s")
	want := environ{"A=1", "DOTNET_TieredPGO=0", "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER=" + CLSID,
		"CORECLR_PROFILER_PATH=/p.so",
		"SEEDWALK_SOCKET=/s", "SEEDWALK_RATE=12.5", "SEEDWALK_RAW=/raw", "SEEDWALK_STACK_BYTES=4096"}
	expect.Slices(t, got, want)
}

// The runtime keeps inlined methods only if that was requested, in every mode.
func TestInlines(t *testing.T) {
	const on = "DOTNET_RichDebugInfo=1"
	for _, mode := range []Mode{ModeProbe, ModeSnapshot} {
		opt := Options{Mode: mode, Env: []string{"A=1", "COMPlus_RichDebugInfo=0", "DOTNET_RichDebugInfo=0"}}
		got := ChildEnviron(&opt, "/s")
		expect.True(t, !slices.Contains(got, on) && slices.Contains(got, "DOTNET_RichDebugInfo=0"),
			"%s: %q", mode, got)
		opt.Inlines = true
		got = ChildEnviron(&opt, "/s")
		expect.True(t, slices.Contains(got, on) && !slices.Contains(got, "DOTNET_RichDebugInfo=0") &&
			!slices.Contains(got, "COMPlus_RichDebugInfo=0") && opt.Env[2] == "DOTNET_RichDebugInfo=0",
			"%s, asked for: %q", mode, got)
	}
}

// Another main profiler stays the main one, and ours runs beside it. Otherwise ours is the main
// one, and profilers beside it stay there.
func TestBeside(t *testing.T) {
	main := []string{"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={846F5F1C-F9AE-4B07-969E-05C26BC060D8}",
		"CORECLR_PROFILER_PATH_64=/a.so"}
	const entry, on = "/p.so=" + CLSID + ";", "CORECLR_ENABLE_NOTIFICATION_PROFILERS=1"
	for _, c := range []struct {
		name      string
		env, want []string
		not       string
	}{
		{"by its number", main, append([]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=1",
			"CORECLR_NOTIFICATION_PROFILERS=" + entry}, main...), "CORECLR_PROFILER=" + CLSID},
		{"by its path", []string{"DOTNET_ENABLE_PROFILING=0x1", "DOTNET_PROFILER_PATH=/a.so"},
			[]string{"DOTNET_PROFILER_PATH=/a.so", "CORECLR_NOTIFICATION_PROFILERS=" + entry},
			"CORECLR_PROFILER="},
		{"with others beside it", append([]string{on, "CORECLR_NOTIFICATION_PROFILERS=/b.so={x};"}, main...),
			[]string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x};" + entry}, "_64=/p.so"},
		{"with a list that wins",
			append([]string{on, "CORECLR_NOTIFICATION_PROFILERS_64=/b.so={x}"}, main...),
			[]string{"CORECLR_NOTIFICATION_PROFILERS_64=/b.so={x};" + entry}, "CORECLR_PROFILER=" + CLSID},
		{"with a list switched off",
			append([]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=0",
				"CORECLR_NOTIFICATION_PROFILERS=/b.so={x}"}, main...),
			[]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=1",
				"CORECLR_NOTIFICATION_PROFILERS=" + entry}, "/b.so"},
		{"only others beside", []string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x}"},
			[]string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x}", "CORECLR_PROFILER=" + CLSID,
				"CORECLR_PROFILER_PATH=/p.so"}, entry},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := Options{Rate: 1, Profiler: "/p.so", Env: c.env}
			got := ChildEnviron(&opt, "/s")
			for _, w := range c.want {
				expect.True(t, slices.Contains(got, w), "%q is missing in %q", w, got)
			}
			expect.True(t, !strings.Contains(strings.Join(got, "\n"), c.not), "%q is in %q", c.not, got)
		})
	}
}

// Every clock that a user may choose has a name in the summary.
func TestClocksHaveNames(t *testing.T) {
	named := map[string]bool{string(sampler.ClockAuto): true}
	for k := export.ClockPerf; k < export.NumClocks; k++ {
		named[k.String()] = true
	}
	for _, c := range sampler.Clocks {
		expect.True(t, named[string(c)],
			"clock %s has no ClockKind with this name in report/export/account.go", c)
	}
}

func TestBlockers(t *testing.T) {
	cases := []struct {
		env  string
		want int
	}{{"DOTNET_EnableDiagnostics=0", 1}, {"COMPlus_EnableDiagnostics=0", 1},
		{"DOTNET_EnableDiagnostics_Profiler=0x0", 1},
		{"DOTNET_EnableDiagnostics=1", 0}, {"DOTNET_EnableDiagnostics=", 0},
		{"DOTNET_EnableDiagnostics_IPC=0", 0}}
	for _, c := range cases {
		got := Blockers([]string{"X=1", c.env})
		expect.True(t, len(got) == c.want, "%s: %q", c.env, got)
	}
}

func TestEventNames(t *testing.T) {
	const all = probe.WaitEvents | probe.LockEvents | probe.AllocEvents | probe.ExceptionEvents
	for _, c := range []struct {
		names Events
		want  wanted
		bad   bool
	}{
		{"", wanted{CPU: true, Wall: true}, false}, {"cpu", wanted{CPU: true}, false},
		{"wall", wanted{Wall: true}, false},
		{"cpu,wall,waits,locks,alloc,exception", wanted{true, true, all}, false},
		{"exception,exception", wanted{Events: probe.ExceptionEvents}, false},
		{"allocs", wanted{}, true}, {"cpu,", wanted{CPU: true}, true},
		{",", wanted{}, true}, {"CPU", wanted{}, true},
	} {
		got, bad := c.names.Parse()
		refused := (&Options{Events: c.names, Mode: ModeProbe}).checkEvents() != nil
		if !NeedsLibrary && c.want.Events != 0 { // as on Windows
			refused = !refused
		}
		if refused != c.bad || bad != "" && !c.bad || got != c.want && !c.bad {
			t.Errorf("%q: %+v, %q, refused %v", c.names, got, bad, refused)
		}
	}
}

// Events need the probe. Without a probe they are refused by name, but samples are not.
func TestEventsNeedTheProbe(t *testing.T) {
	o := Options{Events: "cpu,waits", Mode: ModeSnapshot, modeWhy: "there is no probe for this system"}
	r := o.checkEvents()
	expect.True(t, r != nil && strings.Contains(r.Error(), "there is no probe for this system") &&
		strings.Contains(r.Error(), "--events cpu,waits") && r.Code == ExitRefused, "%v", r)
	o = Options{Events: "locks", Outside: true}
	r = o.ChooseMode()
	expect.True(t, r != nil && strings.Contains(r.Error(), "need a library in the process"), "%v", r)
	o.Mode = ModeSnapshot
	o.Events = "cpu,wall"
	r = o.checkEvents()
	expect.True(t, r == nil, "%v", r)
}
