package export

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// runCases are stacks, leaf first, with their rows, root first. A frame is name@module, the name empty for
// one without a name, and ? behind a doubtful one.
var runCases = []struct{ name, thread, stack, want string }{
	{"a run", "", "@0 @0x @0 Main@3", "Main [runtime helper]"},
	{"nothing without a run", "", "memcpy@4 New@0 Main@3", "Main New memcpy"},
	{"work for a named function", "", "@0 @0x New@0 Main@3", "Main New"},
	{"a named function below", "", "Sleep@0 @0 @0 Main@3", "Main Sleep"},
	{"a name of another image is none", "", "memcpy@4 @0 Main@3", "Main [runtime helper] memcpy"},
	{"two images", "", "@0 @1 @1x @0 Main@3", "Main [runtime helper] [JIT] [JIT]"},
	{"another library calls", "", "@0 poll@4 Main@3", "Main poll [runtime]"},
	{"trust does not mix", "", "@0 @0? Main@3", "Main [runtime helper]? [runtime helper]"},
	{"a library that is not the runtime's", "", "@2 @2x Main@3", "Main libother.so+0x11 libother.so+0x1"},
	{"a thread", "worker", "Main@3 @0 @0 start_thread@4", "start_thread [thread start] Main"},
	{"the compiler's thread", ".NET Tiered Com", "@1 @0 start_thread@4",
		"start_thread [tiered compilation] [JIT]"},
	{"the finalizer", ".NET Finalizer", "@0 start_thread@4 clone@4", "clone start_thread [finalizer]"},
	{"a collector", ".NET Server GC", "@0 clone3@4", "clone3 [GC]"},
	{"the root", ".NET Server GC", "@0 @0", "[runtime]"},
}

var runModules = []string{"libcoreclr.so", "libclrjit.so", "libother.so", "app.dll", "libc.so.6"}

func parseFrame(text string) Frame {
	name, module, _ := strings.Cut(text, "@")
	f := Frame{Name: name, Module: runModules[module[0]-'0'],
		ModuleIndex: int32(module[0] - '0'), Class: ClassRuntime}
	switch f.ModuleIndex {
	case 2, 4:
		f.Class = ClassNative
	case 3:
		f.Class = ClassManaged
	}
	if name == "" {
		f.Name = f.Module + "+0x" + strings.Repeat("1", len(module))
	}
	f.Doubtful = strings.HasSuffix(module, "?")
	return f
}

// withRuns returns a profile of runCases, each with a thread of its own.
func withRuns() *Profile {
	p := &Profile{}
	for _, m := range runModules {
		p.Modules = append(p.Modules, Module{Path: m})
	}
	for i, c := range runCases {
		p.Threads = append(p.Threads, Thread{i + 1, c.thread})
		s := Stack{Thread: i, Complete: true, Count: 1}
		for _, text := range strings.Fields(c.stack) {
			f := parseFrame(text)
			at := slices.Index(p.Frames, f)
			if at < 0 {
				at = len(p.Frames)
				p.Frames = append(p.Frames, f)
			}
			s.Frames = append(s.Frames, int32(at))
		}
		p.Stacks = append(p.Stacks, s)
	}
	return p
}

// Frames of the runtime without names are one row, by a name or a role.
func TestRuns(t *testing.T) {
	v := newShortView(withRuns())
	for i, c := range runCases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, k := range v.paths[i].symbols {
				s := v.symbols[k]
				if s.doubtful {
					s.name += "?"
				}
				got = append(got, s.name)
			}
			expect.Equal(t, strings.Join(got, " "), c.want)
		})
	}
}

// While Fold is on, the page shows the same rows as the other formats, but it also folds the start of a
// thread. While Fold is off, the page shows each frame.
func TestPageRuns(t *testing.T) {
	b := browser.Find(t, "the folded frames of the page were not looked at")
	const script = `<script>addEventListener('load', () => {
	for (const fold of [true, false]) for (let t = 0; t < data.threads.length; t++) {
		Object.assign(state, { fold, thread: t });
		rebuild();
		const leaf = Array.from({ length: tree.n }, (_, i) => i).find(i => tree.self[i] > 0), out = document.createElement('pre');
		out.className = 'answer';
		out.textContent = pathOf(tree, leaf).slice(1).map(i => symbols[tree.symbol[i]]).map(s => s.name + (s.doubtful ? '?' : '')).join(' ');
		document.body.append(out);
	}
});</script></body>`
	p := withRuns()
	var want, names []string
	thread := strings.NewReplacer("start_thread [thread start]", "[thread start]",
		"start_thread [tiered", "[thread start] [tiered")
	for _, c := range runCases {
		names, want = append(names, c.name), append(want, thread.Replace(c.want))
	}
	v := newView(p)
	for i, c := range runCases {
		names, want = append(names, c.name+", unfolded"),
			append(want, strings.ReplaceAll(strings.ReplaceAll(v.fold(&v.paths[i]), ";", " "),
				" [doubtful]", "?"))
	}
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>", script, 1)),
		"#m=samples")
	browser.Answers(t, dom, log, names, want...)
}

// What starts or resumes an async method is not shown, unless a stack ends there.
func TestAsyncFold(t *testing.T) {
	const rs = "System.Runtime.CompilerServices."
	start, core := rs+"AsyncTaskMethodBuilder<int>.Start<App.Run>", rs+"AsyncMethodBuilderCore.Start<T>(T&)"
	box, run := rs+"AsyncTaskMethodBuilder<T>.AsyncStateMachineBox<T>.MoveNext(Thread)",
		"System.Threading.ExecutionContext.RunInternal"
	for _, c := range []struct {
		name        string
		stack, want []string // root first
	}{
		{"started", []string{"App.Run", start, core, "App.Run (async)", "App.Work"},
			[]string{"App.Run", "App.Run (async)", "App.Work"}},
		{"resumed", []string{"Pool.Dispatch", box, run, "App.Run(int) (async lambda 2)"},
			[]string{"Pool.Dispatch", "App.Run(int) (async lambda 2)"}},
		{"F#", []string{"App.run", start, "App.run (async, line 3)"},
			[]string{"App.run", "App.run (async, line 3)"}},
		{"twice", []string{"A", start, "A (async)", "B", core, "B (async)"},
			[]string{"A", "A (async)", "B", "B (async)"}},
		{"a stack ends there", []string{"A", start, core}, []string{"A", start, core}},
		{"another callee", []string{"A", start, "GC.Collect"}, []string{"A", start, "GC.Collect"}},
		{"a context without an async method", []string{"Thread.Start", run, "App.Loop"},
			[]string{"Thread.Start", run, "App.Loop"}},
		{"an iterator", []string{"A", start, "A (iterator)"}, []string{"A", start, "A (iterator)"}},
		{"others of the builder", []string{"A", rs + "AsyncTaskMethodBuilder.SetResult", "B (async)"},
			[]string{"A", rs + "AsyncTaskMethodBuilder.SetResult", "B (async)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Profile{Threads: []Thread{{}}, Stacks: []Stack{{Complete: true, Count: 1}}}
			for i, name := range c.stack {
				p.Frames = append(p.Frames, Frame{Name: name, ModuleIndex: -1, Class: ClassManaged})
				p.Stacks[0].Frames = append([]int32{int32(i)}, p.Stacks[0].Frames...)
			}
			for _, v := range []*view{newShortView(p), newView(p)} {
				var got []string
				for _, i := range v.paths[0].symbols {
					got = append(got, v.symbols[i].name)
				}
				want := c.want
				if !v.short {
					want = c.stack
				}
				expect.Slices(t, got, want)
			}
		})
	}
}
