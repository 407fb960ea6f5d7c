package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// Machines of ELF files.
const machine386, machineX64, machineARM32 = 3, 62, 40

// pausing returns an ELF program for a machine that waits for ever and uses no library.
func pausing(machine uint16) []byte {
	const base = 0x400000
	le := binary.LittleEndian
	code, b := []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7},
		[]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	half, word := func(v uint16) { b = le.AppendUint16(b, v) }, func(v uint32) { b = le.AppendUint32(b, v) }
	wide := func(v uint64) { b = le.AppendUint64(b, v) }
	if machine == machine386 {
		b[4] = 1
		code = []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}
		wide = func(v uint64) { word(uint32(v)) }
	}
	header, program := 64, 56
	if machine == machine386 {
		header, program = 52, 32
	}
	size := uint64(header + program + len(code))
	half(2)
	half(machine)
	word(1)
	wide(base + size - uint64(len(code))) // where it begins
	wide(uint64(header))
	wide(0)
	word(0)
	for _, v := range []int{header, program, 1, 0, 0, 0} {
		half(uint16(v))
	}
	word(1)
	if machine != machine386 {
		word(5)
	}
	for _, v := range []uint64{0, base, base, size, size} {
		wide(v)
	}
	if machine == machine386 {
		word(5)
	}
	wide(0x1000)
	return append(b, code...)
}

// waiting starts a program that waits, and returns its number.
func waiting(t *testing.T, attr *syscall.SysProcAttr, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED-CHECK: the system does not start such a program: " + err.Error())
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	time.Sleep(100 * time.Millisecond)
	return strconv.Itoa(cmd.Process.Pid)
}

// rooted starts a program in a root folder and new namespaces of its own, after make has added files to that
// folder.
func rooted(t *testing.T, namespaces uintptr, make func(root string)) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: other files for a process need root")
	}
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "pausing"), pausing(machineX64), 0o755))
	make(root)
	return waiting(t, &syscall.SysProcAttr{Chroot: root, Cloneflags: namespaces}, "/pausing")
}

// A process that cannot be recorded or examined is refused in one line, with what to do.
func TestProcessesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name          string
		pid           func(t *testing.T) string
		stack, record string // parts of the output; "" = it works
	}{
		{"gone", func(*testing.T) string { return "4194303" }, "no process 4194303: find its PID",
			"no such process; find its PID"},
		{"of another architecture", func(t *testing.T) string {
			exe := filepath.Join(t.TempDir(), "pausing")
			must.Do(t, os.WriteFile(exe, pausing(machine386), 0o755))
			return waiting(t, nil, exe)
		}, "for another architecture (x86 (32-bit)): use a seedwalk for that architecture",
			"for another architecture; use a seedwalk for that architecture"},
		{"not .NET", func(t *testing.T) string { return waiting(t, nil, "sleep", "60") }, "",
			"no diagnostics port: it is not a .NET process"},
		{"a container without a /tmp", func(t *testing.T) string {
			return rooted(t, syscall.CLONE_NEWNS, func(string) {})
		}, "", "a container or a chroot whose /tmp cannot be written: no such file or directory; run seedwalk in there or as root, or use seedwalk stack"},
		{"a chroot without a /tmp", func(t *testing.T) string {
			return rooted(t, 0, func(string) {})
		}, "", "a container or a chroot whose /tmp cannot be written: no such file or directory"},
		{"a container whose /tmp is a link", func(t *testing.T) string {
			return rooted(t, syscall.CLONE_NEWNS, func(root string) {
				os.Symlink("/var/tmp", filepath.Join(root, "tmp"))
			})
		}, "", "a container or a chroot whose /tmp is a link; run seedwalk in there, or use seedwalk stack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid := c.pid(t)
			_, errOut, code, _ := tool(t, "stack", pid)
			if strings.Contains(errOut, "cannot be read") {
				t.Skip("SKIPPED-CHECK: " + errOut)
			}
			judgeLine(t, "stack", errOut, c.stack)
			expect.True(t, (code == 0) == (c.stack == ""), "stack ended with %d", code)
			_, errOut, code, _ = tool(t, "record", "--quiet", "--pid", pid,
				"--duration", "1s", "--output", "o.folded")
			judgeLine(t, "record", errOut, c.record)
			expect.True(t, code == 125, "record ended with %d", code)
		})
	}
}

func judgeLine(t *testing.T, command, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" ||
		want != "" && (strings.Count(got, "\n") != 1 || !strings.ContainsAny(got, ";:")) {
		t.Errorf("%s says %q, not %q in one line", command, got, want)
	}
}

// coreOf makes a core of a waiting program in dir.
func coreOf(t *testing.T, dir string) (core []byte, exe string) {
	t.Helper()
	gcore := needs.Command(t, "gcore")
	sleep := needs.Command(t, "sleep")
	exe = filepath.Join(dir, "waits")
	b, err := os.ReadFile(sleep)
	must.True(t, err == nil && os.WriteFile(exe, b, 0o755) == nil, "%v", err)
	pid := waiting(t, nil, exe, "60")
	if out, err := exec.Command(gcore, "-o", filepath.Join(dir, "core"), pid).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: gcore: %v\n%s", err, out)
	}
	core = must.Get(os.ReadFile(filepath.Join(dir, "core."+pid)))(t)
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
		{"text", func([]byte) []byte { return make([]byte, 100) }, nil,
			"it is not an ELF file; name a core", 3, ""},
		{"a program", at(16, 3), nil, "type 3, and a core has type 4; name a core", 3, ""},
		{"of another architecture", at(18, machineARM32), nil,
			"ELF machine 40; x86-64 (62) and ARM64 (183) are read; use a debugger for that machine", 3, ""},
		{"without mappings", at(56, 1), nil, "the core has no memory; write the core again", 3, ""},
		{"truncated before the notes", func(b []byte) []byte { return b[:len(b)*3/4] }, nil,
			"no thread's registers", 3, ""},
		{"truncated in the memory", farMemory, nil,
			", and 2 pieces more; the rest is shown; write the core again, with enough room",
			1, "libc.so"},
		{"of a program of another build", func(b []byte) []byte { return b }, func() {
			os.Remove(exe)
			os.WriteFile(exe, another, 0o755)
		}, "is of another build (", 1, "libc.so"},
		{"of a program that is gone", func(b []byte) []byte { return b }, func() { os.Remove(exe) },
			"the file is missing, and the core lacks its code; name its folder with --modules",
			1, "libc.so"},
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
			must.Do(t, os.WriteFile(file, c.damage(append([]byte(nil), core...)), 0o644))
			out, errOut, code, _ := tool(t, "stack", "--core", file)
			judgeLine(t, "stack --core", errOut, c.says)
			expect.True(t, code == c.code && strings.Contains(out, c.shows),
				"it ended with %d and shows\n%s", code, out)
		})
	}
}
