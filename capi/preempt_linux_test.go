//go:build linux && amd64

package main

import (
	"debug/dwarf"
	"debug/elf"
	"debug/pe"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The libraries that are loaded into other programs do not preempt their own threads: each is loaded into a
// process, and its runtime's setting is read there.
func TestNoPreemption(t *testing.T) {
	dir := host(t)
	library, loader := filepath.Join("..", "scripts", "library.sh"), filepath.Join(dir, "load")
	path := func(name string) string { return filepath.Join(dir, name) }
	gcc(t, "-o", loader, "testdata/load.c", "-ldl")
	do(t, nil, library, "c-shared", "-o", path("profiler.so"), "../profiler")
	do(t, nil, library, "c-shared", "-o", path("busy.so"), "./testdata/busygo")
	do(t, nil, "go", "build", "-buildmode=c-shared", "-o", path("plain.so"), "./testdata/busygo")
	gcc(t, "-shared", "-fPIC", "-o", path("archive.so"), "testdata/use.c", path("libseedwalk.a"), "-lpthread")
	for _, c := range []struct {
		name string
		off  uint32
	}{{"libseedwalk.so", 1}, {"archive.so", 1}, {"profiler.so", 1}, {"busy.so", 1}, {"plain.so", 0}} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, preemptOff(t, loader, path(c.name)), c.off, "runtime.debug.asyncpreemptoff")
		})
	}
	t.Run("signals", func(t *testing.T) {
		with, without := signals(t, loader, path("busy.so")), signals(t, loader, path("plain.so"))
		fmt.Printf("a loop in Go beside 5 collections: %d SIGURG as our libraries are built, %d as Go builds\n", with, without)
		expect.True(t, with == 0 && without != 0, "%d and %d signals, want none and some", with, without)
	})
}

// preemptOff loads the library into a process and reads its Go runtime's debug.asyncpreemptoff.
func preemptOff(t *testing.T, loader, library string) uint32 {
	t.Helper()
	f := must.Get(elf.Open(library))(t)
	defer f.Close()
	at := settingAt(t, f)
	return uint32(number(t, do(t, nil, loader, library, "peek", strconv.FormatUint(at, 10))))
}

// signals returns how many preemption signals a loop in the library met.
func signals(t *testing.T, loader, library string) int {
	t.Helper()
	return number(t, do(t, nil, loader, library, "loop"))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	must.Equal(t, err, nil, "%q is no number", text)
	return n
}

// settingAt returns the address of runtime.debug.asyncpreemptoff in the image.
func settingAt(t *testing.T, f *elf.File) uint64 {
	t.Helper()
	symbols := must.Get(f.Symbols())(t)
	d := must.Get(f.DWARF())(t)
	for _, s := range symbols {
		if s.Name == "runtime.debug" {
			return s.Value + fieldAt(t, d, "runtime.debug", "asyncpreemptoff")
		}
	}
	t.Fatal("no runtime.debug")
	return 0
}

// fieldAt returns the offset of a field in a variable of a structure type.
func fieldAt(t *testing.T, d *dwarf.Data, variable, field string) uint64 {
	t.Helper()
	for r := d.Reader(); ; {
		e, err := r.Next()
		must.True(t, err == nil && e != nil, "%s: no field %s: %v", variable, field, err)
		if name, _ := e.Val(dwarf.AttrName).(string); e.Tag != dwarf.TagVariable || name != variable {
			continue
		}
		off, _ := e.Val(dwarf.AttrType).(dwarf.Offset)
		typ := must.Get(d.Type(off))(t)
		for _, m := range typ.(*dwarf.StructType).Field {
			if m.Name == field {
				return uint64(m.ByteOffset)
			}
		}
	}
}

// Every library that was built for a test, a demo, or a user, on both systems, was built by
// scripts/library.sh: it contains the linker's setting.
func TestBuiltWithoutPreemption(t *testing.T) {
	built := []string{"../out/bin/libseedwalk_profiler.so"}
	for _, pattern := range []string{"../out/windows/seedwalk_profiler*.dll",
		"../out/dist/*/*.so", "../out/dist/*/*.dll"} {
		more, _ := filepath.Glob(pattern)
		built = append(built, more...)
	}
	seen := 0
	for _, path := range built {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		seen++
		expect.Equal(t, defaults(t, path), "asyncpreemptoff=1", "%s: Go's default settings", path)
	}
	if seen == 0 {
		t.Skip("SKIPPED-CHECK: no library is built in out; run make build")
	}
	for _, p := range platforms {
		t.Run(p.name, func(t *testing.T) {
			path := filepath.Join(p.libraries(t), p.shared)
			expect.Equal(t, defaults(t, path), "asyncpreemptoff=1", "Go's default settings")
		})
	}
}

// defaults returns the linker's value of runtime.godebugDefault.
func defaults(t *testing.T, path string) string {
	t.Helper()
	const name = "runtime.godebugDefault.str"
	if f, err := pe.Open(path); err == nil {
		defer f.Close()
		for _, s := range f.Symbols {
			if s.Name == name {
				return upToNull(f.Sections[s.SectionNumber-1], int64(s.Value))
			}
		}
		return ""
	}
	f := must.Get(elf.Open(path))(t)
	defer f.Close()
	symbols := must.Get(f.Symbols())(t)
	for _, s := range symbols {
		if s.Name == name {
			in := f.Sections[s.Section]
			return upToNull(in, int64(s.Value-in.Addr))
		}
	}
	return ""
}

func upToNull(r interface {
	ReadAt([]byte, int64) (int, error)
}, at int64) string {
	b := make([]byte, 64)
	n, _ := r.ReadAt(b, at)
	text, _, _ := strings.Cut(string(b[:n]), "\x00")
	return text
}
