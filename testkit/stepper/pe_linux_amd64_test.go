package stepper

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Windows images: mapped into a Linux process and really executed.
var images = []build{
	{"mingw O0", false, []string{"x86_64-w64-mingw32-gcc", "-O0"}},
	{"mingw O1", false, []string{"x86_64-w64-mingw32-gcc", "-O1"}},
	{"mingw O2", true, []string{"x86_64-w64-mingw32-gcc", "-O2"}},
	{"mingw O3 haswell", false, []string{"x86_64-w64-mingw32-gcc", "-O3", "-march=haswell"}},
	{"mingw Os", false, []string{"x86_64-w64-mingw32-gcc", "-Os"}},
	{"mingw frame pointer", false, []string{"x86_64-w64-mingw32-gcc", "-O2", "-fno-omit-frame-pointer"}},
	{"mingw CET", false, []string{"x86_64-w64-mingw32-gcc", "-O2", "-fcf-protection=full"}},
	{"clang O0", false, []string{clang, "-O0", "--target=x86_64-w64-windows-gnu"}},
	{"clang O2", false, []string{clang, "-O2", "--target=x86_64-w64-windows-gnu"}},
	{"clang O3 haswell", true, []string{clang, "-O3", "-march=haswell", "--target=x86_64-w64-windows-gnu"}},
	{"clang Oz", false, []string{clang, "-Oz", "--target=x86_64-w64-windows-gnu"}},
	{"clang frame pointer", false,
		[]string{clang, "-O2", "-fno-omit-frame-pointer", "--target=x86_64-w64-windows-gnu"}},
	{"clang msvc O2", false,
		[]string{clang, "-O2", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-mno-stack-arg-probe"}},
}

const imageBase = 0x1_4000_0000

// image compiles a program as an image, and writes it as it is laid out in memory.
func (b *build) image(t *testing.T, source, tables string) (f *pe.File, flat string) {
	t.Helper()
	b.need(t, "x86_64-w64-mingw32-gcc")
	dir := t.TempDir()
	object, dll := filepath.Join(dir, "shapes.o"), filepath.Join(dir, "shapes.bin")
	b.object(t, object, tables, source)
	command(t, "x86_64-w64-mingw32-gcc", "-nostdlib", "-shared", "-o", dll, object, "-lgcc",
		"-Wl,-e,everything", fmt.Sprintf("-Wl,--image-base,%#x", imageBase), "-Wl,--disable-dynamicbase")
	return flatten(t, dir, dll)
}

// object compiles a program for an image, and skips the test if the compiler refuses: some crash on some
// random programs.
func (b *build) object(t *testing.T, object string, args ...string) {
	t.Helper()
	args = append(append(b.cc[1:len(b.cc):len(b.cc)], args...), "-w", "-DNOLIBC", "-c", "-o", object)
	if out, err := exec.Command(b.cc[0], args...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: %v: %v %s", b.cc, err, out)
	}
}

// command runs a compiler or linker.
func command(t *testing.T, args ...string) {
	t.Helper()
	must.Run(t, exec.Command(args[0], args[1:]...))
}

// flatten writes an image as it is laid out in memory.
func flatten(t *testing.T, dir, dll string) (f *pe.File, flat string) {
	t.Helper()
	f = must.Get(pe.Open(dll))(t)
	whole := make([]byte, (f.SizeOfImage()+0xfff)&^0xfff)
	copy(whole, f.Tail(0, 4096))
	for _, s := range f.Sections() {
		copy(whole[s.RVA:], f.Tail(s.RVA, int(s.VirtualSize)))
	}
	flat = filepath.Join(dir, "flat")
	must.Do(t, os.WriteFile(flat, whole, 0o600))
	return f, flat
}

// entryOf returns the RVA of an image's entry point.
func entryOf(f *pe.File) uint32 {
	head, _ := f.BytesAt(0, 1024)
	return binary.LittleEndian.Uint32(head[binary.LittleEndian.Uint32(head[0x3c:])+24+16:])
}

// TestImages walks at the instructions of Windows images.
func TestImages(t *testing.T) {
	each(t, images, func(t *testing.T, b *build) {
		b.stepImage(t, shapes,
			"-fasynchronous-unwind-tables", false, 0)
	})
}

// TestStrippedImages walks the same without an exception directory, by the code alone.
func TestStrippedImages(t *testing.T) {
	each(t, images, func(t *testing.T, b *build) {
		b.stepImage(t, shapes,
			"-fno-asynchronous-unwind-tables", true, 0.95)
	})
}

// stepImage steps an image's entry point, which a loader calls, and judges the walks.
func (b *build) stepImage(t *testing.T, source, tables string, guess bool, least float64) {
	loader := filepath.Join(t.TempDir(), "peload")
	if out, err := exec.Command("gcc", "-O1", "-o", loader,
		"testdata/peload.c").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: no loader: %v\n%s", err, out)
	}
	f, flat := b.image(t, source, tables)
	j := NewJudge()
	j.Guess = guess
	j.Keep |= 1<<context.RSI | 1<<context.RDI
	j.Edit = func(m *module.Module) {
		if m.Path == flat {
			m.PE, m.ELF, m.CFI, m.Bias = f, nil, nil, imageBase
		}
	}
	o, enough := options(flat), 1000
	if source != shapes {
		o, enough = few(flat), 100 // a random program may be short
	}
	cmd := exec.Command(loader, flat, fmt.Sprintf("%x", imageBase), fmt.Sprintf("%x", entryOf(f)))
	must.Do(t, Run(cmd, o, j.Visit))
	note(t, &j.Tally)
	share := float64(j.Complete+j.Right) / float64(max(1, j.Points))
	expect.True(t, j.SureWrong == 0 && j.Points >= enough && share >= least,
		"%.4f right; wrong without doubt:\n%s", share, Worst(j.Bad, 30))
	if len(j.Ends)+len(j.Doubts) > 0 {
		t.Logf("ends:\n%sdoubtful and wrong:\n%s", Worst(j.Ends, 12), Worst(j.Doubts, 12))
	}
}
