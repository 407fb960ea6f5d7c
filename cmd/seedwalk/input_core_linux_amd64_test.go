package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// coreOf makes a core of a waiting program in dir.
func coreOf(t *testing.T, dir string) (core []byte, exe string) {
	t.Helper()
	gcore, err := exec.LookPath("gcore")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gcore (Debian package gdb)")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no sleep")
	}
	exe = filepath.Join(dir, "waits")
	b, err := os.ReadFile(sleep)
	if err != nil || os.WriteFile(exe, b, 0o755) != nil {
		t.Fatal(err)
	}
	pid := waiting(t, nil, exe, "60")
	if out, err := exec.Command(gcore, "-o", filepath.Join(dir, "core"), pid).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: gcore: %v\n%s", err, out)
	}
	if core, err = os.ReadFile(filepath.Join(dir, "core."+pid)); err != nil {
		t.Fatal(err)
	}
	return core, exe
}

// farMemory changes a core: the first three pieces of its memory are beyond its end.
func farMemory(b []byte) []byte {
	le, pieces := binary.LittleEndian, 0
	for i := range int(le.Uint16(b[56:])) {
		if h := b[int(le.Uint64(b[32:]))+i*56:]; le.Uint32(h) == 1 && le.Uint64(h[32:]) > 0 && pieces < 3 {
			le.PutUint64(h[8:], 1<<40)
			pieces++
		}
	}
	return b
}

// A damaged or unusual core is reported in one line with a remedy, and its readable part is shown.
func TestCoresThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	core, exe := coreOf(t, dir)
	le := binary.LittleEndian
	at := func(off int, v uint16) func([]byte) []byte {
		return func(b []byte) []byte { le.PutUint16(b[off:], v); return b }
	}
	var another []byte // a program of another build
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		before func()
		says   string
		code   int
		shows  string
	}{
		{"whole", func(b []byte) []byte { return b }, nil, "", 0, "waits"},
		{"empty", func([]byte) []byte { return nil }, nil, "it is empty; name a core", 3, ""},
		{"text", func([]byte) []byte { return make([]byte, 100) }, nil, "it is no ELF file; name a core", 3, ""},
		{"a program", at(16, 3), nil, "type 3, and a core has type 4; name a core", 3, ""},
		{"of another architecture", at(18, machineARM32), nil, "ELF machine 40; x86-64 (62) and ARM64 (183) are read; a debugger for that machine", 3, ""},
		{"without mappings", at(56, 1), nil, "the core has no memory; have it written once more", 3, ""},
		{"truncated before the notes", func(b []byte) []byte { return b[:len(b)*3/4] }, nil, "no thread's registers", 3, ""},
		{"truncated in the memory", farMemory, nil, "the file has 0, and 2 pieces more; what it has is shown; have it written once more, with room", 1, "libc.so"},
		{"of a program of another build", func(b []byte) []byte { return b }, func() {
			os.Remove(exe)
			os.WriteFile(exe, another, 0o755)
		}, "is of another build (", 1, "libc.so"},
		{"of a program that is gone", func(b []byte) []byte { return b }, func() { os.Remove(exe) }, "the file is not here, and the core does not have its code; give its folder with --modules", 1, "libc.so"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				var err error
				if another, err = os.ReadFile("/bin/cat"); err != nil {
					t.Skip("SKIPPED-CHECK: " + err.Error())
				}
				c.before()
			}
			file := filepath.Join(dir, "damaged")
			if err := os.WriteFile(file, c.damage(append([]byte(nil), core...)), 0o644); err != nil {
				t.Fatal(err)
			}
			out, errOut, code, _ := tool(t, "stack", "--core", file)
			if judgeLine(t, "stack --core", errOut, c.says); code != c.code || !strings.Contains(out, c.shows) {
				t.Errorf("it ended with %d and shows\n%s", code, out)
			}
		})
	}
}
