package symbol

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const source = `
__attribute__((noinline)) static int hidden(int a) { return a * 3 + 1; }
__attribute__((noinline)) int exported(int a) { return hidden(a) + 2; }
__asm__(".text\n.type bare,@function\n.cfi_startproc\nbare: nop\nnop\nret\n.cfi_endproc\n"
        ".type nothing,@function\nnothing: nop\nret\n.p2align 4\n");
int main(int c, char **v) { return exported(c); }
`

// build compiles the source with debugging symbols and returns a directory
// with prog and a helper that runs a tool in it.
func build(t *testing.T) (string, func(string, ...string)) {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		must.Run(t, cmd)
	}
	needs.Command(t, "gcc", "objcopy", "strip", "xz")
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.c"), []byte(source), 0o644))
	run("gcc", "-g", "-O1", "-rdynamic", "-Wl,--build-id=0xabcdef0123456789", "-o", "prog", "a.c")
	return dir, run
}

// truth returns the symbol table of the unstripped program.
func truth(t *testing.T, path string) map[string]elf.Symbol {
	t.Helper()
	f := must.Get(elf.Open(path))(t)
	m := map[string]elf.Symbol{}
	for s := range f.Symbols(false) {
		m[s.Name] = s
	}
	must.True(t, m["hidden"].Size != 0 && m["exported"].Size != 0 && m["bare"].Value != 0 &&
		m["nothing"].Value != 0, "the compiler made no such symbols: %v", m)
	return m
}

func TestPlaces(t *testing.T) {
	dir, run := build(t)
	want := truth(t, filepath.Join(dir, "prog"))
	run("objcopy", "--only-keep-debug", "prog", "full.debug")
	run("cp", "prog", "plain")
	run("strip", "-o", "stripped", "prog")
	run("cp", "full.debug", "linked.debug")
	run("objcopy", "--strip-all", "--add-gnu-debuglink=linked.debug", "prog", "linked")
	run("sh", "-c", "objcopy -S --remove-section .comment --keep-symbol hidden --keep-symbol bare --keep-symbol nothing full.debug mini && xz -k mini")
	run("objcopy", "--add-section", ".gnu_debugdata=mini.xz", "stripped", "packed")
	run("sh", "-c", "mkdir -p dbg/.build-id/ab && cp full.debug dbg/.build-id/ab/cdef0123456789.debug")
	run("sh", "-c", "mkdir wrong && cp linked wrong/ && echo x > wrong/linked.debug")
	cases := []struct {
		name, file, debug string
		hidden            bool // the static function has a name
	}{
		{"its own table", "plain", "", true},
		{"stripped", "stripped", "", false},
		{"by build id", "stripped", "dbg", true},
		{"by debug link", "linked", "", true},
		{"debug link to another file", "wrong/linked", "", false},
		{"mini debug info", "packed", "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := NewResolver()
			r.DebugDirs = []string{filepath.Join(dir, c.debug, "none")}
			if c.debug != "" {
				r.DebugDirs = []string{filepath.Join(dir, c.debug)}
			}
			at := func(addr uint64) string {
				name, _ := r.Name(filepath.Join(dir, c.file), "", addr)
				return name
			}
			e, h := want["exported"], want["hidden"]
			expect.Equal(t, at(e.Value+e.Size-1), "exported", "exported")
			if got := at(h.Value); (got == "hidden") != c.hidden || got != "hidden" && got != "" {
				t.Errorf("hidden: %q", got)
			}
			if got := at(want["bare"].Value + 2); c.hidden && got != "bare" {
				t.Errorf("a symbol without size, covered by an unwind record: %q", got)
			}
			expect.Equal(t, at(want["nothing"].Value), "", "nothing covers this address")
			path := filepath.Join(dir, c.file)
			start, end, ok := r.Function(path, "", h.Value+1)
			expect.True(t, ok && start == h.Value && end == h.Value+h.Size,
				"the function without a name: %#x-%#x %v, want %#x+%#x", start, end, ok, h.Value, h.Size)
			_, _, ok = r.Function(path, "", want["nothing"].Value)
			expect.True(t, !ok, "a function where the unwind table has none")
		})
	}
}

func TestBuildIDMustFit(t *testing.T) {
	dir, _ := build(t)
	path := filepath.Join(dir, "prog")
	main := truth(t, path)["main"].Value
	r := NewResolver()
	for id, want := range map[string]string{"": "main", "abcdef0123456789": "main", "00cdef0123456789": ""} {
		got, _ := r.Name(path, id, main)
		expect.True(t, got == want, "build id %q: %q, want %q", id, got, want)
	}
	got, _ := r.Name(path+" (deleted)", "abcdef0123456789", main)
	expect.True(t, got == "main", "deleted, but the same file is there again: %q", got)
	_, ok := r.Name(filepath.Join(dir, "none"), "", 5)
	expect.True(t, !ok, "a name from no file")
}

// A program unloads a library without a build ID, and loads another one from the same path.
func TestReplacedImage(t *testing.T) {
	dir, _ := build(t)
	path := filepath.Join(dir, "prog")
	main := truth(t, path)["main"].Value
	first := must.Get(elf.Open(path))(t)
	data := must.Get(os.ReadFile(path))(t)
	for _, s := range first.Segments() {
		if s.Executable() {
			data[s.Off] ^= 1
		}
	}
	other := must.Get(elf.New(data, path))(t)
	for _, c := range []struct {
		id     string
		second *elf.File
		want   string
	}{{"", first, "main"}, {"", other, ""}, {"abcdef0123456789", other, "main"}} {
		r := NewResolver()
		r.Keep(path, c.id, first)
		name, _ := r.Name(path, c.id, main)
		expect.Equal(t, name, "main", "before the second image")
		r.Keep(path, c.id, c.second)
		r.Keep(path, c.id, first)
		name, _ = r.Name(path, c.id, main)
		expect.Equal(t, name, c.want, "build ID %q", c.id)
	}
}

func TestVDSO(t *testing.T) {
	start, _, ok := ownMapping("[vdso]")
	if !ok {
		t.Skip("SKIPPED-CHECK: this process has no vdso")
	}
	table := NewResolver().Table("[vdso]", "")
	found := false
	for _, e := range table.entries {
		found = found || strings.Contains(e.name, "clock_gettime")
	}
	expect.True(t, found, "no clock_gettime among the %d symbols of the vdso at %#x", table.Len(), start)
}

// TestExecutable: overlapping segments are joined, so that a symbol costs the same however many segments an
// image has.
func TestExecutable(t *testing.T) {
	segment := func(flags uint32, addr, size uint64) elfasm.Segment {
		return elfasm.Segment{Type: 1, Flags: flags, Addr: addr, FileSize: min(size, 1), MemSize: size}
	}
	file := elfasm.File{Segments: []elfasm.Segment{
		segment(5, 0x9000, 0x100), segment(4, 0x5000, 0x100),
		segment(5, 0x1000, 0x800), segment(5, 0x1800, 0x800),
	}}
	for i := range uint64(100) {
		file.Segments = append(file.Segments, segment(5, 0x1000+i, 0x800))
	}
	f := must.Get(elf.New(file.Bytes(), "segments"))(t)
	ranges := executable(f)
	want := []memory.Range{{Start: 0x1000, End: 0x2000}, {Start: 0x9000, End: 0x9100}}
	must.True(t, slices.Equal(ranges, want), "%x", ranges)
	for addr, want := range map[uint64]bool{0xfff: false, 0x1000: true, 0x1fff: true, 0x2000: false,
		0x5000: false, 0x9000: true, 0x90ff: true, 0x9100: false} {
		expect.Equal(t, isCode(ranges, &elf.Symbol{Value: addr, Type: sttFunc}), want, "%#x", addr)
	}
}

// The functions of a compiled library have names; the space between them has none.
func TestPENames(t *testing.T) {
	const cc = "x86_64-w64-mingw32-gcc"
	needs.Command(t, cc)
	dll := filepath.Join(tempdir.New(t), "demo.dll")
	must.Run(t, exec.Command(cc, "-O2", "-shared", "-o", dll, "../profiler/testdata/demo.c"))
	n := NewResolver()
	f := must.Get(pe.Open(dll))(t)
	var at uint64
	for _, s := range f.Functions() {
		if s.Name == "demo_quicksort" {
			at = uint64(s.RVA)
		}
	}
	must.True(t, at != 0, "demo_quicksort is not among the names")
	start, end, ok := n.Function(dll, "", at+1)
	must.True(t, ok && start == at && end > at+8, "function %#x to %#x, %v", start, end, ok)
	for _, c := range []struct {
		name string
		addr uint64
		want string
	}{
		{"first byte", at, "demo_quicksort"},
		{"last byte", end - 1, "demo_quicksort"},
		{"header", 0x10, ""},
		{"outside", 1 << 31, ""},
		{"no RVA", 1 << 40, ""},
	} {
		got, _ := n.Name(dll, "", c.addr)
		expect.True(t, got == c.want, "%s: %q, want %q", c.name, got, c.want)
	}
	name, ok := n.Name(filepath.Join(tempdir.New(t), "none.dll"), "", at)
	expect.True(t, !ok, "a file that is not there names %q", name)
}

// TestNamesWithDollar: names in Swift begin with a $, as the marks of code and data on ARM64 do.
func TestNamesWithDollar(t *testing.T) {
	names, symbols := []byte{0}, make([]byte, 24)
	for i, name := range []string{"$s4shop3getyyF", "$x", "$d.1", "$dollar"} {
		le := binary.LittleEndian
		symbols = le.AppendUint16(append(le.AppendUint32(symbols, uint32(len(names))), 0x12, 0), 1)
		symbols = le.AppendUint64(le.AppendUint64(symbols, 0x40+0x10*uint64(i)), 0x10)
		names = append(append(names, name...), 0)
	}
	f := elfasm.File{Machine: elfasm.ARM64,
		Segments: []elfasm.Segment{{Type: elfasm.Load, Flags: elfasm.ReadExecute}},
		Sections: []elfasm.Section{
			{Name: ".symtab", Type: elfasm.SymTab, Link: 2, EntrySize: 24, Body: symbols},
			{Name: ".strtab", Type: elfasm.StrTab, Body: names}}}
	table := ELF(must.Get(elf.New(f.Bytes(), "swift"))(t), "", nil)
	for i, want := range []string{"$s4shop3getyyF", "", "", "$dollar"} {
		name, _, _ := table.Find(0x48 + 0x10*uint64(i))
		expect.Equal(t, name, want)
	}
}
