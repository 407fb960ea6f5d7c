package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	envLibrary = "SEEDWALK_TEST_LIBRARY" // the file that the target runs
	envOther   = "SEEDWALK_TEST_OTHER"   // the file that replaces it
	envKept    = "SEEDWALK_TEST_KEPT"    // a file that exists once the tool has kept the first one
)

func init() {
	otherTargets["replaced"] = func() int { return replaced(true) }
	otherTargets["deleted"] = func() int { return replaced(false) }
}

// replaced maps a library as the loader does, and replaces the file once the tool has kept it. With false,
// it deletes the file before the tool knows of it.
func replaced(told bool) int {
	path := os.Getenv(envLibrary)
	f, err := elf.Open(path)
	if err != nil {
		return 90
	}
	base, err := mapped(path, f)
	if err != nil {
		return 91
	}
	m := wire.Module{ID: 9, Path: path, BuildID: f.BuildID(), Start: base, End: base + extent(f), Bias: base}
	if !told {
		os.Remove(path)
		m.Path += " (deleted)"
	}
	c := send(greet, func(w *wire.Writer) { w.Module(&m) })
	awaitFile(os.Getenv(envKept))
	if err := os.Rename(os.Getenv(envOther), path); err != nil {
		return 92
	}
	w := wire.NewWriter(nil)
	w.Sample(&wire.Sample{TID: 70, TimeUnixNano: 1_000_000_000, Frames: []wire.Frame{
		{Kind: unwind.KindNative, Trust: unwind.TrustContext, Flags: wire.FrameExact, Module: 9,
			IP: m.Bias + offsetOf(f, path)},
	}})
	w.Bye("exit")
	c.Write(w.Bytes())
	return 0
}

// keptNamer makes a file once it keeps a library.
type keptNamer struct {
	*symbol.Resolver
	library, kept string
}

func (k keptNamer) Keep(path, buildID string, f *elf.File) {
	if k.Resolver.Keep(path, buildID, f); strings.HasPrefix(path, k.library) {
		os.WriteFile(k.kept, nil, 0o600)
	}
}

// mapped maps the library as the loader does.
func mapped(path string, f *elf.File) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	const read = syscall.PROT_READ | syscall.PROT_EXEC
	base, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, uintptr(extent(f)), read,
		syscall.MAP_PRIVATE|syscall.MAP_ANON, ^uintptr(0), 0)
	for _, s := range f.Segments() {
		if skip := s.Off % uint64(os.Getpagesize()); errno == 0 {
			_, _, errno = syscall.Syscall6(syscall.SYS_MMAP, base+uintptr(s.Vaddr-skip),
				uintptr(s.Filesz+skip), read, syscall.MAP_PRIVATE|syscall.MAP_FIXED,
				file.Fd(), uintptr(s.Off-skip))
		}
	}
	if errno != 0 {
		return 0, errno
	}
	return uint64(base), nil
}

func extent(f *elf.File) (end uint64) {
	for _, s := range f.Segments() {
		end = max(end, s.Vaddr+s.Memsz)
	}
	return end
}

// offsetOf returns the address of the library's only function.
func offsetOf(f *elf.File, path string) uint64 {
	table := symbol.ELF(f, path, nil)
	for a := range extent(f) {
		if name, _, ok := table.Find(a); ok && name == "as_it_ran" {
			return a
		}
	}
	return 0
}

// A library that is replaced or deleted while it runs still gives its names, and its replacement gives none.
func TestReplacedImage(t *testing.T) {
	needs.Command(t, "gcc")
	for _, what := range []string{"replaced", "deleted"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			library, other := filepath.Join(dir, "librun.so"), filepath.Join(dir, "libother.so")
			for path, name := range map[string]string{library: "as_it_ran", other: "as_it_is_now"} {
				source := filepath.Join(dir, "x.c")
				os.WriteFile(source, fmt.Appendf(nil,
					"int %s(int n);\nint %s(int n) { return n * 3; }\n", name, name), 0o644)
				must.Run(t, exec.Command("gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", path, source))
			}
			opt, _ := fakeRun(t, what)
			kept := filepath.Join(dir, "kept")
			opt.Namer = keptNamer{symbol.NewResolver(), library, kept}
			opt.Env = append(opt.Env, envLibrary+"="+library, envOther+"="+other, envKept+"="+kept)
			res := mustRun(t, opt)
			got := content(t, opt.Outputs[0].Path)
			expect.True(t, res.ExitCode == 0 && strings.Contains(got, "as_it_ran[native]"),
				"exit code %d, the profile has\n%s", res.ExitCode, got)
		})
	}
}
