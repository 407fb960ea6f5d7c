package stepper

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Windows images of ARM64: mapped into a Linux process in an emulator, and executed.
const (
	gnu64  = "--target=aarch64-w64-windows-gnu"
	msvc64 = "--target=aarch64-pc-windows-msvc"
)

var images64 = []build{
	{"gnu O0", false, []string{clang, gnu64, "-O0"}},
	{"gnu O1", false, []string{clang, gnu64, "-O1"}},
	{"gnu O2", true, []string{clang, gnu64, "-O2"}},
	{"gnu O3", false, []string{clang, gnu64, "-O3", "-mcpu=neoverse-n1"}},
	{"gnu Os", false, []string{clang, gnu64, "-Os"}},
	{"gnu Oz", false, []string{clang, gnu64, "-Oz"}},
	{"gnu frame pointer", false,
		[]string{clang, gnu64, "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"}},
	{"gnu no frame pointer", false, []string{clang, gnu64, "-O2", "-fomit-frame-pointer"}},
	{"gnu PAC", true, []string{clang, gnu64, "-O2", "-mbranch-protection=pac-ret+b-key"}},
	{"gnu PAC in leaves", false, []string{clang, gnu64, "-O2", "-mbranch-protection=pac-ret+leaf+b-key"}},
	{"msvc O0", false, []string{clang, msvc64, "-O0"}},
	{"msvc O2", false, []string{clang, msvc64, "-O2"}},
	{"msvc Os", false, []string{clang, msvc64, "-Os"}},
	{"msvc homes arguments", false,
		[]string{clang, msvc64, "-O1", "-fno-inline", "-fno-optimize-sibling-calls"}},
}

// image64 compiles and links the program, and writes its image as it is laid out in memory.
func (b *build) image64(t *testing.T, dir, source, tables string) (f *pe.File, flat string) {
	t.Helper()
	b.need(t, "qemu-aarch64", lldLink, "aarch64-linux-gnu-gcc")
	object, dll := filepath.Join(dir, "shapes.o"), filepath.Join(dir, "shapes.dll")
	b.object(t, object, "-ffreestanding", "-mno-stack-arg-probe", tables, source)
	command(t, lldLink, "/dll", "/entry:everything", "/machine:arm64", "/nodefaultlib", "/lldmingw",
		fmt.Sprintf("/base:%#x", imageBase), "/out:"+dll, object)
	return flatten(t, dir, dll)
}

// TestImagesARM64 walks at the instructions of Windows images of ARM64.
func TestImagesARM64(t *testing.T) {
	each(t, images64, func(t *testing.T, b *build) {
		b.stepImage64(t, shapes,
			"-funwind-tables", true, 0.99)
	})
}

// TestStrippedImagesARM64 walks the same without an exception directory: by the code alone.
func TestStrippedImagesARM64(t *testing.T) {
	each(t, images64, func(t *testing.T, b *build) {
		b.stepImage64(t, shapes,
			"-fno-asynchronous-unwind-tables", true, 0.99)
	})
}

// stepImage64 steps an image's entry point, which a loader calls, and judges the walks.
func (b *build) stepImage64(t *testing.T, source, tables string, guess bool, least float64) {
	dir := t.TempDir()
	f, flat := b.image64(t, dir, source, tables)
	entry := entryOf(f)
	loader := filepath.Join(dir, "peload")
	command(t, "aarch64-linux-gnu-gcc", "-O1", "-static", "-no-pie", "-o", loader, "testdata/peload.c")
	g, cmd, err := startQemu(dir, loader, flat, fmt.Sprintf("%x", imageBase), fmt.Sprintf("%x", entry))
	if err != nil {
		t.Skip("SKIPPED-CHECK: qemu-aarch64: ", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	m := module.Module{ID: 1, Start: imageBase, End: imageBase + uint64(f.SizeOfImage()),
		Path: flat, Bias: imageBase, PE: f}
	p := newStepped64(g, m, func(pc uint64) ([]byte, bool) { return f.BytesAt(uint32(pc-imageBase), 4) })
	p.guess = guess
	for range 3 { // the loader calls the entry point more than once
		must.Do(t, p.from(imageBase+uint64(entry)))
		must.Do(t, p.run(steps(source, 100_000)))
	}
	p.judge(t, 100, least)
}
