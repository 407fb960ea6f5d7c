package oracle

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// wanted are the files of the host, in the folders where systems have them, and
// those of an AArch64 cross compiler.
var (
	folders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib64", "/usr/lib64", "/usr/bin"}
	wanted = []string{"libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
		"libcrypto.so.3", "python3.11"}

	crossFolders = []string{"/usr/aarch64-linux-gnu/lib"}
	crossWanted  = []string{"libasan.so.8"}
)

// realFiles lists the files to compare, each content once.
func realFiles(t *testing.T) []string {
	t.Helper()
	files := append(find(t, folders, wanted), find(t, crossFolders, crossWanted)...)
	files = append(files, runtimeFiles(t)...)
	files = append(files, vectorFiles(t)...)
	seen := map[[32]byte]bool{}
	var out []string
	for _, path := range files {
		data := must.Get(os.ReadFile(path))(t)
		if h := sha256.Sum256(data); !seen[h] {
			seen[h] = true
			out = append(out, path)
		}
	}
	return out
}

func find(t *testing.T, folders, names []string) (files []string) {
	t.Helper()
	for _, name := range names {
		path := ""
		for _, dir := range folders {
			if p := filepath.Join(dir, name); path == "" && exists(p) {
				path = p
			}
		}
		if path == "" {
			t.Logf("SKIPPED-CHECK: %s is not on this host", name)
			continue
		}
		files = append(files, path)
	}
	return files
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runtimeFiles are those of the .NET runtime that the tests run on.
func runtimeFiles(t *testing.T) []string {
	t.Helper()
	const root = "../.."
	out, err := exec.Command(filepath.Join(root, "scripts", "runtime-dir.sh")).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil {
		t.Log("SKIPPED-CHECK: no .NET runtime: its libraries are not compared")
		return nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return find(t, []string{dir}, []string{"libcoreclr.so", "libclrjit.so"})
}

// vectorFiles writes the ELF files of the vectors into a folder of the test.
func vectorFiles(t *testing.T) (files []string) {
	t.Helper()
	var names []string
	a, err := snap.OpenVectors(func(name string) bool {
		is := strings.HasPrefix(name, "files/") || strings.HasSuffix(name, ".full.elf")
		if is {
			names = append(names, name)
		}
		return is
	})
	if err != nil {
		t.Log("SKIPPED-CHECK: the elf vectors are not here")
		return nil
	}
	dir := t.TempDir()
	for _, name := range names {
		data, _ := a.File(name)
		if !bytes.HasPrefix(data, []byte("\x7fELF")) {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, data, 0o644))
		files = append(files, path)
	}
	return files
}

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
		{"64-bit, zlib", "cc", []string{"-gdwarf64", asCFI, "-gz=zlib"},
			format{version: 3, wide: true, zipped: true}},
		{"AArch64", cross, []string{"-O2"}, format{version: 1}},
		{"AArch64, zlib", cross, []string{"-O1", "-gz=zlib"}, format{version: 1, zipped: true}},
		{"AArch64, signing", cross, []string{"-O2", "-mbranch-protection=pac-ret"}, format{version: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			needs.Command(t, tc.compiler)
			out := filepath.Join(t.TempDir(), "frames.so")
			args := append([]string{"-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fPIC",
				"-shared", "-nostdlib", "-o", out, "testdata/frames.c"}, tc.args...)
			must.Run(t, exec.Command(tc.compiler, args...))
			f, tab := load(t, out)
			s := f.CFISections()
			must.True(t, len(s.DebugFrame) > 0 && len(s.EHFrame) == 0 && tab.Stats().DebugFDEs >= 7,
				"%d bytes of .debug_frame, %d of .eh_frame, %d FDEs", len(s.DebugFrame), len(s.EHFrame),
				tab.Stats().DebugFDEs)
			expect.Equal(t, formatOf(t, out), tc.is, "what the compiler wrote")
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
	must.Do(t, err)
	defer f.Close()
	s := f.Section(".debug_frame")
	must.True(t, s != nil, "no .debug_frame")
	data, err := s.Data()
	must.True(t, err == nil && len(data) >= 24, "%d bytes of .debug_frame: %v", len(data), err)
	is.zipped = s.Flags&elf.SHF_COMPRESSED != 0
	is.version = data[8]
	if is.wide = string(data[:4]) == "\xff\xff\xff\xff"; is.wide {
		is.version = data[20]
	}
	return is
}
