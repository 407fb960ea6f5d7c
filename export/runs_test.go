package export

import (
	"strings"
	"testing"
)

// Frames of the runtime without names are one row, by a name or a role.
func TestRuns(t *testing.T) {
	modules := []string{"libcoreclr.so", "libclrjit.so", "libother.so", "app.dll", "libc.so.6"}
	frame := func(text string) Frame {
		name, module, _ := strings.Cut(text, "@")
		f := Frame{Name: name, Module: modules[module[0]-'0'], ModuleIndex: int32(module[0] - '0'), Class: ClassRuntime}
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
	for _, c := range []struct{ name, thread, stack, want string }{ // leaf first; rows root first
		{"a run", "", "@0 @0x @0 Main@3", "Main [runtime]"},
		{"nothing without a run", "", "memcpy@4 New@0 Main@3", "Main New memcpy"},
		{"work for a named function", "", "@0 @0x New@0 Main@3", "Main New"},
		{"a named function below", "", "Sleep@0 @0 @0 Main@3", "Main Sleep"},
		{"a name of another image is none", "", "memcpy@4 @0 Main@3", "Main [runtime] memcpy"},
		{"two images", "", "@0 @1 @1x @0 Main@3", "Main [runtime] [JIT] [runtime]"},
		{"trust does not mix", "", "@0 @0? Main@3", "Main [runtime]? [runtime]"},
		{"a library that is not the runtime's", "", "@2 @2x Main@3", "Main libother.so+0x11 libother.so+0x1"},
		{"a thread", "worker", "Main@3 @0 @0 start_thread@4", "start_thread [thread start] Main"},
		{"the compiler's thread", ".NET Tiered Com", "@1 @0 start_thread@4", "start_thread [tiered compilation] [JIT]"},
		{"the finalizer", ".NET Finalizer", "@0 start_thread@4 clone@4", "clone start_thread [finalizer]"},
		{"a collector", ".NET Server GC", "@0 clone3@4", "clone3 [GC]"},
		{"the root", ".NET Server GC", "@0 @0", "[runtime]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Profile{Threads: []Thread{{1, c.thread}}, Stacks: []Stack{{Complete: true, Count: 1}}}
			for _, m := range modules {
				p.Modules = append(p.Modules, Module{Path: m})
			}
			for i, text := range strings.Fields(c.stack) {
				p.Frames = append(p.Frames, frame(text))
				p.Stacks[0].Frames = append(p.Stacks[0].Frames, int32(i))
			}
			v := newShortView(p)
			var got []string
			for _, i := range v.paths[0].symbols {
				s := v.symbols[i]
				if s.doubtful {
					s.name += "?"
				}
				got = append(got, s.name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
