package collect

import (
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
)

type fakeNamer struct{}

func (fakeNamer) Name(path, buildID string, addr uint64) (string, bool) { return "", false }

func (fakeNamer) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	return 0, 0, false
}

type fakeFiler struct{ fakeNamer }

func (fakeFiler) DebugFile(path, _ string) string {
	if path == filepath.FromSlash("/opt/libcoreclr.so") {
		return "libcoreclr.so.dbg"
	}
	return ""
}

func TestUnsymbolized(t *testing.T) {
	profile := func(named, nameless, elsewhere int64) *export.Profile {
		return &export.Profile{
			Modules: []export.Module{{Path: filepath.FromSlash("/opt/libcoreclr.so")}, {Path: "/lib/libother.so"}},
			Frames: []export.Frame{
				{Name: "App.Main", ModuleIndex: -1, Class: export.ClassManaged},
				{Name: "libcoreclr.so+0x10", Module: "libcoreclr.so", ModuleIndex: 0, Class: export.ClassRuntime},
				{Name: "libother.so+0x10", Module: "libother.so", ModuleIndex: 1, Class: export.ClassNative}},
			Stacks: []export.Stack{{Frames: []int32{0}, Count: named}, {Frames: []int32{1}, Count: nameless}, {Frames: []int32{2}, Count: elsewhere}},
		}
	}
	want := " of the frames have no name: put libcoreclr.so.dbg beside libcoreclr.so (in " + filepath.FromSlash("/opt") + ") for those of libcoreclr.so"
	for _, c := range []struct {
		name string
		p    *export.Profile
		n    Namer
		want string
	}{
		{"many", profile(36, 64, 0), fakeFiler{}, "64 %" + want},
		{"most are elsewhere, where nothing is known to help", profile(36, 4, 60), fakeFiler{}, "64 %" + want},
		{"few", profile(96, 4, 0), fakeFiler{}, ""},
		{"no file known", profile(36, 0, 64), fakeFiler{}, ""},
		{"a namer that knows no files", profile(0, 100, 0), fakeNamer{}, ""},
		{"nothing", &export.Profile{}, fakeFiler{}, ""},
	} {
		if got := unsymbolized(c.p, c.n); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The summary names what shows inlined methods only where none was seen and the runtime can keep them.
func TestHidesInlined(t *testing.T) {
	managed := export.Frame{Name: "A.B", Class: export.ClassManaged}
	inlined := export.Frame{Name: "A.C (inlined)", Class: export.ClassManaged}
	for _, c := range []struct {
		name, runtime, way string
		frames             []export.Frame
		want               bool
	}{
		{"not kept", ".NET 9.0.5", "probe", []export.Frame{managed}, true}, {"kept", ".NET 9.0.5", "probe", []export.Frame{managed, inlined}, false},
		{"nothing managed", ".NET 9.0.5", "probe", nil, false}, {"cannot be kept", ".NET 8.0.6", "probe", []export.Frame{managed}, false},
		{"by the profiling API", ".NET 9.0.5", "snapshot", []export.Frame{managed}, false},
	} {
		if got := hidesInlined(&export.Profile{Runtime: c.runtime, Frames: c.frames, Stats: export.Stats{Way: c.way}}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
