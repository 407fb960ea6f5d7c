package record

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestRefusals(t *testing.T) {
	dir := tempdir.New(t)
	noExec := filepath.Join(dir, "data")
	if err := os.WriteFile(noExec, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(*Options)
		code   int
		want   string
	}{
		{"no command", func(o *Options) { o.Command = nil }, 125, "no command"},
		{"rate too high", func(o *Options) { o.Rate = 1e6 }, 125, "out of range"},
		{"rate negative", func(o *Options) { o.Rate = -1 }, 125, "out of range"},
		{"stack too large", func(o *Options) { o.StackBytes = MaxStackBytes + 1 }, 125, "out of range"},
		{"stack negative", func(o *Options) { o.StackBytes = -1 }, 125, "out of range"},
		{"command not found", func(o *Options) { o.Command = []string{"no-such-command"} }, 127, "not found"},
		{"path not found", func(o *Options) { o.Command = []string{dir + "/none"} }, 127, "not found"},
		{"not executable", func(o *Options) { o.Command = []string{noExec} }, 126, notExecutable},
		{"no profiler", func(o *Options) { o.Profiler = dir + "/none.so" }, 125, "cannot be read"},
		{"output in no directory", func(o *Options) { o.Outputs = []Output{{dir + "/none/x", plain}} }, 125, makeFolder + filepath.Join(dir, "none")},
		{"output is a directory", func(o *Options) { o.Outputs = []Output{{dir, plain}} }, 125, "is a directory"},
		{"raw in no directory", func(o *Options) { o.Raw = dir + "/none/raw" }, 125, makeFolder},
		{"ourselves", func(o *Options) {
			o.Env = append(o.Env, "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER="+strings.ToLower(CLSID))
		}, 125, "already recording"},
		{"ourselves beside another", func(o *Options) {
			o.Env = append(o.Env, "CORECLR_ENABLE_NOTIFICATION_PROFILERS=1", "CORECLR_NOTIFICATION_PROFILERS=/a.so={846F5F1C-F9AE-4B07-969E-05C26BC060D8};/p.so="+strings.ToLower(CLSID))
		}, 125, "already recording"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opt, _ := options(t, "silent")
			c.change(&opt)
			_, err := Run(opt)
			var r *Refusal
			if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Error(), c.want) || strings.Contains(r.Error(), "\n") {
				t.Errorf("got %v, want code %d and %q in one line", err, c.code, c.want)
			}
		})
	}
}

func TestNoLibrary(t *testing.T) {
	const plain, arm = "--mode snapshot needs the profiler library " + LibraryName, "there is no library for ARM64 that suspends a runtime"
	missing := &fs.PathError{Op: "stat", Path: "/p.so", Err: fs.ErrNotExist}
	for _, c := range []struct {
		name, system string
		mode         Mode
		why          string
		err          error
		want         []string
	}{
		{"x86-64", "linux/amd64", ModeSnapshot, "", missing, []string{plain, "build it"}},
		{"ARM64", "linux/arm64", ModeSnapshot, "", missing, []string{arm, "leave --mode out"}},
		{"ARM64, not wanted", "linux/arm64", ModeSnapshot, "there is no probe", missing, []string{arm, "one is needed: there is no probe", ".NET 9 or later"}},
		{"ARM64, the probe's", "linux/arm64", ModeProbe, "", missing, []string{"the probe cannot be read", "leave out --probe"}},
		{"ARM64, one's own", "linux/arm64", ModeSnapshot, "", &fs.PathError{Op: "stat", Path: "/p.so", Err: fs.ErrPermission}, []string{plain}},
		{"Windows on ARM64", "windows/arm64", ModeSnapshot, "", missing, []string{plain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Profiler: "/p.so", Mode: c.mode, modeWhy: c.why}
			got := o.noLibrary(c.system, c.err)
			for _, want := range c.want {
				if text := got.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") || got.Code != 125 {
					t.Errorf("code %d, %q, want %q in one line", got.Code, text, want)
				}
			}
		})
	}
}

func TestChildEnviron(t *testing.T) {
	opt := Options{Rate: 12.5, Profiler: "/p.so", Raw: "/raw", StackBytes: 4096, Env: []string{"A=1", "CORECLR_ENABLE_PROFILING=0",
		"CORECLR_PROFILER_PATH_64=/other.so", "DOTNET_PROFILER={x}", "SEEDWALK_SOCKET=/old", "DOTNET_TieredPGO=0"}}
	got := childEnviron(&opt, "/s")
	want := environ{"A=1", "DOTNET_TieredPGO=0", "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER=" + CLSID, "CORECLR_PROFILER_PATH=/p.so",
		"SEEDWALK_SOCKET=/s", "SEEDWALK_RATE=12.5", "SEEDWALK_RAW=/raw", "SEEDWALK_STACK_BYTES=4096"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Another profiler stays the main one, ours runs beside it; one that is only beside
// stays there.
func TestBeside(t *testing.T) {
	main := []string{"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={846F5F1C-F9AE-4B07-969E-05C26BC060D8}", "CORECLR_PROFILER_PATH_64=/a.so"}
	const entry, on = "/p.so=" + CLSID + ";", "CORECLR_ENABLE_NOTIFICATION_PROFILERS=1"
	for _, c := range []struct {
		name      string
		env, want []string
		not       string
	}{
		{"by its number", main, append([]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=1", "CORECLR_NOTIFICATION_PROFILERS=" + entry}, main...), "CORECLR_PROFILER=" + CLSID},
		{"by its path", []string{"DOTNET_ENABLE_PROFILING=0x1", "DOTNET_PROFILER_PATH=/a.so"}, []string{"DOTNET_PROFILER_PATH=/a.so", "CORECLR_NOTIFICATION_PROFILERS=" + entry}, "CORECLR_PROFILER="},
		{"with others beside it", append([]string{on, "CORECLR_NOTIFICATION_PROFILERS=/b.so={x};"}, main...), []string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x};" + entry}, "_64=/p.so"},
		{"with a list that wins", append([]string{on, "CORECLR_NOTIFICATION_PROFILERS_64=/b.so={x}"}, main...), []string{"CORECLR_NOTIFICATION_PROFILERS_64=/b.so={x};" + entry}, "CORECLR_PROFILER=" + CLSID},
		{"with a list switched off", append([]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=0", "CORECLR_NOTIFICATION_PROFILERS=/b.so={x}"}, main...),
			[]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS=1", "CORECLR_NOTIFICATION_PROFILERS=" + entry}, "/b.so"},
		{"only others beside", []string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x}"}, []string{"CORECLR_NOTIFICATION_PROFILERS=/b.so={x}", "CORECLR_PROFILER=" + CLSID, "CORECLR_PROFILER_PATH=/p.so"}, entry},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := Options{Rate: 1, Profiler: "/p.so", Env: c.env}
			got := childEnviron(&opt, "/s")
			for _, w := range c.want {
				if !slices.Contains(got, w) {
					t.Errorf("%q is missing in %q", w, got)
				}
			}
			if strings.Contains(strings.Join(got, "\n"), c.not) {
				t.Errorf("%q is in %q", c.not, got)
			}
		})
	}
}

func TestBlockers(t *testing.T) {
	cases := []struct {
		env  string
		want int
	}{{"DOTNET_EnableDiagnostics=0", 1}, {"COMPlus_EnableDiagnostics=0", 1}, {"DOTNET_EnableDiagnostics_Profiler=0x0", 1},
		{"DOTNET_EnableDiagnostics=1", 0}, {"DOTNET_EnableDiagnostics=", 0}, {"DOTNET_EnableDiagnostics_IPC=0", 0}}
	for _, c := range cases {
		if got := Blockers([]string{"X=1", c.env}); len(got) != c.want {
			t.Errorf("%s: %q", c.env, got)
		}
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	dir := tempdir.New(t)
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	os.WriteFile(path, []byte("old"), 0o640)
	if runtime.GOOS == "windows" {
		link = path // links want rights of their own there
	} else {
		os.Symlink(path, link)
	}
	f := newFiles()
	boom := errors.New("boom")
	err := f.write(link, func(w io.Writer) error { io.WriteString(w, "half"); return boom })
	if err != boom || content(t, path) != "old" {
		t.Errorf("a failed write: %v, content %q", err, content(t, path))
	}
	if err := f.write(link, writeString("new")); err != nil || content(t, path) != "new" {
		t.Errorf("%v, content %q", err, content(t, path))
	}
	left, _ := os.ReadDir(dir)
	if runtime.GOOS == "windows" {
		if len(left) != 1 {
			t.Errorf("files %v", left)
		}
		return // no modes either
	}
	info, _ := os.Lstat(link)
	if info.Mode()&os.ModeSymlink == 0 || len(left) != 2 {
		t.Errorf("link %v, files %v", info.Mode(), left)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestStdoutOutput(t *testing.T) {
	r, w, _ := os.Pipe()
	opt, _ := options(t, "exit")
	opt.Stdout, opt.Outputs = w, []Output{{"-", plain}}
	mustRun(t, opt)
	w.Close()
	if b, _ := io.ReadAll(r); strings.Count(string(b), "x10") != 1 {
		t.Errorf("got %q", b)
	}
}
