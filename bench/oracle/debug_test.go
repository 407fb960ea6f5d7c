package oracle

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDebugFrame compares .debug_frame as compilers write it: by the assembler
// and by the compiler itself, which differ in CIE version and width; plain and
// compressed.
func TestDebugFrame(t *testing.T) {
	l := newLibdw(t)
	const (
		cross = "aarch64-linux-gnu-gcc"
		asCFI = "-fno-dwarf2-cfi-asm" // the compiler writes the records, not the assembler
	)
	for _, tc := range []struct {
		name, compiler string
		args           []string
		is             format
	}{
		{"plain", "cc", nil, format{version: 1}},
		{"zlib", "cc", []string{"-gz=zlib"}, format{version: 1, zipped: true}},
		{"optimised", "cc", []string{"-O2"}, format{version: 1}},
		{"frame pointers", "cc", []string{"-O1", "-fno-omit-frame-pointer"}, format{version: 1}},
		{"version 4", "cc", []string{"-O2", "-Wa,--gdwarf-cie-version=4"}, format{version: 4}},
		{"version 3", "cc", []string{"-O2", asCFI}, format{version: 3}},
		{"64-bit", "cc", []string{"-O2", "-gdwarf64", asCFI}, format{version: 3, wide: true}},
		{"64-bit, zlib", "cc", []string{"-gdwarf64", asCFI, "-gz=zlib"}, format{version: 3, wide: true, zipped: true}},
		{"AArch64", cross, []string{"-O2"}, format{version: 1}},
		{"AArch64, zlib", cross, []string{"-O1", "-gz=zlib"}, format{version: 1, zipped: true}},
		{"AArch64, signing", cross, []string{"-O2", "-mbranch-protection=pac-ret"}, format{version: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := exec.LookPath(tc.compiler); err != nil {
				t.Skipf("SKIPPED-CHECK: no %s", tc.compiler)
			}
			out := filepath.Join(t.TempDir(), "frames.so")
			args := append([]string{"-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fPIC", "-shared", "-nostdlib", "-o", out, "testdata/frames.c"}, tc.args...)
			if msg, err := exec.Command(tc.compiler, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, msg)
			}
			f, tab := load(t, out)
			if s := f.CFISections(); len(s.DebugFrame) == 0 || len(s.EHFrame) != 0 || tab.Stats().DebugFDEs < 7 {
				t.Fatalf("%d bytes of .debug_frame, %d of .eh_frame, %d FDEs", len(s.DebugFrame), len(s.EHFrame), tab.Stats().DebugFDEs)
			}
			if is := formatOf(t, out); is != tc.is {
				t.Errorf("the compiler wrote %+v, not %+v", is, tc.is)
			}
			t.Log(l.compareFile(t, out))
		})
	}
}

// format is how a .debug_frame section is written.
type format struct {
	version uint8 // of its first CIE
	wide    bool  // 64-bit DWARF
	zipped  bool  // SHF_COMPRESSED
}

// formatOf looks at a file with the standard library's reader.
func formatOf(t *testing.T, path string) (is format) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".debug_frame")
	if s == nil {
		t.Fatal("no .debug_frame")
	}
	data, err := s.Data()
	if err != nil || len(data) < 24 {
		t.Fatalf("%d bytes of .debug_frame: %v", len(data), err)
	}
	is.zipped = s.Flags&elf.SHF_COMPRESSED != 0
	is.version = data[8]
	if is.wide = string(data[:4]) == "\xff\xff\xff\xff"; is.wide {
		is.version = data[20]
	}
	return is
}
