package stepper

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
)

// Windows images: mapped into a Linux process and really executed.
var images = []build{
	{"mingw O0", false, []string{"x86_64-w64-mingw32-gcc", "-O0"}},
	{"mingw O2", true, []string{"x86_64-w64-mingw32-gcc", "-O2"}},
	{"mingw O3 haswell", false, []string{"x86_64-w64-mingw32-gcc", "-O3", "-march=haswell"}},
	{"mingw Os", false, []string{"x86_64-w64-mingw32-gcc", "-Os"}},
	{"mingw frame pointer", false, []string{"x86_64-w64-mingw32-gcc", "-O2", "-fno-omit-frame-pointer"}},
	{"clang O0", false, []string{"clang-19", "-O0", "--target=x86_64-w64-windows-gnu"}},
	{"clang O2", false, []string{"clang-19", "-O2", "--target=x86_64-w64-windows-gnu"}},
	{"clang O3 haswell", true, []string{"clang-19", "-O3", "-march=haswell", "--target=x86_64-w64-windows-gnu"}},
	{"clang Oz", false, []string{"clang-19", "-Oz", "--target=x86_64-w64-windows-gnu"}},
	{"clang msvc O2", false, []string{"clang-19", "-O2", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-mno-stack-arg-probe"}},
}

const imageBase = 0x1_4000_0000

// image compiles the program as an image, and writes it as it lies in memory.
func (b *build) image(t *testing.T) (f *pe.File, flat string) {
	t.Helper()
	if !b.few && !*all {
		t.Skip("SKIPPED-CHECK: of the stepped programs one build in each kind; all with -all")
	}
	for _, tool := range []string{b.cc[0], "x86_64-w64-mingw32-gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("SKIPPED-CHECK: no " + tool)
		}
	}
	dir := t.TempDir()
	object, dll := filepath.Join(dir, "shapes.o"), filepath.Join(dir, "shapes.bin")
	run := func(args ...string) {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run(append(append([]string{}, b.cc...), "-w", "-DNOLIBC", "-c", "-o", object, "testdata/shapes.c")...)
	run("x86_64-w64-mingw32-gcc", "-nostdlib", "-shared", "-o", dll, object, "-lgcc", "-Wl,-e,everything", fmt.Sprintf("-Wl,--image-base,%#x", imageBase), "-Wl,--disable-dynamicbase")
	f, err := pe.Open(dll)
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, (f.SizeOfImage()+0xfff)&^0xfff)
	copy(whole, f.Tail(0, 4096))
	for _, s := range f.Sections() {
		copy(whole[s.RVA:], f.Tail(s.RVA, int(s.VirtualSize)))
	}
	flat = filepath.Join(dir, "flat")
	if err := os.WriteFile(flat, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return f, flat
}

// TestImages walks at the instructions of Windows images.
func TestImages(t *testing.T) {
	loader := filepath.Join(t.TempDir(), "peload")
	if out, err := exec.Command("gcc", "-O1", "-o", loader, "testdata/peload.c").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: no loader: %v\n%s", err, out)
	}
	for _, b := range images {
		t.Run(b.name, func(t *testing.T) {
			f, flat := b.image(t)
			head, _ := f.BytesAt(0, 1024)
			entry := binary.LittleEndian.Uint32(head[binary.LittleEndian.Uint32(head[0x3c:])+24+16:])
			j := NewJudge()
			j.Keep |= 1<<context.RSI | 1<<context.RDI
			j.Edit = func(m *module.Module) {
				if m.Path == flat {
					m.PE, m.ELF, m.CFI, m.Bias = f, nil, nil, imageBase
				}
			}
			cmd := exec.Command(loader, flat, fmt.Sprintf("%x", imageBase), fmt.Sprintf("%x", entry))
			if err := Run(cmd, options(flat), j.Visit); err != nil {
				t.Fatal(err)
			}
			t.Log(j.String())
			if j.SureWrong > 0 || j.Points < 1000 {
				t.Errorf("wrong without doubt:\n%s", Worst(j.Bad, 30))
			}
			if len(j.Ends)+len(j.Doubts) > 0 {
				t.Logf("ends:\n%sdoubtful and wrong:\n%s", Worst(j.Ends, 12), Worst(j.Doubts, 12))
			}
		})
	}
}
