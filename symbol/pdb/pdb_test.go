package pdb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pdbfile"
)

const code = 0x60000020

// example is a PDB with each kind of content that is read.
func example() *pdbfile.File {
	return &pdbfile.File{
		GUID: [16]byte{0xdd, 0xcc, 0xbb, 0xaa, 0xff, 0xee, 0x22, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}, Age: 0x2a,
		Sections: []pdbfile.Section{{RVA: 0x1000, Size: 0x2000, Flags: code},
			{RVA: 0x4000, Size: 0x100, Flags: 0x40000040}},
		Publics: []pdbfile.Name{{Segment: 1, Offset: 0x10, Text: "?f@@YAXXZ"},
			{Segment: 2, Offset: 0, Text: "data"}, {Segment: 3, Offset: 0, Text: "nowhere"},
			{Segment: 1, Offset: 0x2000, Text: "behind"}},
		Modules: []pdbfile.Module{{}, {
			Procedures: []pdbfile.Name{{Segment: 1, Offset: 0x10, Size: 0x20, Text: "f"},
				{Segment: 1, Offset: 0x1000, Size: 0x30, Text: strings.Repeat("long", 400)}},
			Lines: []pdbfile.Line{
				{Segment: 1, Offset: 0x10, Size: 0x20, File: 1,
					Entries: [][2]uint32{{0, 7}, {4, 8}, {8, 0xfeefee}, {12, 9}}},
				{Segment: 1, Offset: 0x1000, Size: 0x30, File: 5, Entries: [][2]uint32{{8, 70}}},
			},
		}},
		Names: []byte("\x00a.c\x00dir/b.c\x00"),
	}
}

func TestFile(t *testing.T) {
	f := must.Get(New(example().Bytes(), "x.pdb"))(t)
	expect.Equal(t, f.ID(), "AABBCCDDEEFF112201020304050607082A", "ID")
	want := []Symbol{{0x1010, 0, "?f@@YAXXZ"}, {0x1010, 0x20, "f"},
		{0x2000, 0x30, strings.Repeat("long", 400)}}
	got, err := f.Symbols()
	expect.True(t, err == nil && slices.Equal(got, want), "%v, %v", got, err)
	for _, c := range []struct {
		name string
		rva  uint32
		file string
		line int
	}{
		{"first byte", 0x1010, "a.c", 7}, {"before the next line", 0x1013, "a.c", 7},
		{"next line", 0x1014, "a.c", 8},
		{"hidden", 0x1018, "", 0}, {"last byte", 0x102f, "a.c", 9}, {"behind", 0x1030, "", 0},
		{"before all", 0x100f, "", 0},
		{"before the first line", 0x2007, "", 0},
		{"another file", 0x2008, "dir/b.c", 70}, {"data", 0x4000, "", 0},
	} {
		if file, line := f.Line(c.rva); file != c.file || line != c.line {
			t.Errorf("%s: %s:%d, want %s:%d", c.name, file, line, c.file, c.line)
		}
	}
}

// Damage is refused with its reason, or costs only what is damaged.
func TestDamage(t *testing.T) {
	streams := func(change func(s [][]byte) [][]byte) []byte { return pdbfile.Pack(change(example().Streams())) }
	put := func(stream, at int, v uint32) []byte {
		return streams(func(s [][]byte) [][]byte { le.PutUint32(s[stream][at:], v); return s })
	}
	file := func(at int, v uint32) []byte { b := example().Bytes(); le.PutUint32(b[at:], v); return b }
	moved := example()
	moved.Omap = true
	directory := func() int { b := example().Bytes(); return int(le.Uint32(b[3*pdbfile.Block:])) * pdbfile.Block }()
	for _, c := range []struct {
		name string
		b    []byte
		want Reason
	}{
		{"nothing", nil, NotPDB},
		{"another format", []byte(strings.Repeat("BSJB", 99)), NotPDB},
		{"header cut", example().Bytes()[:superSize-1], NotPDB},
		{"block size 0", file(len(magic), 0), BadVersion},
		{"block size no power of two", file(len(magic), 513), BadVersion},
		{"block size too large", file(len(magic), 1<<31), BadVersion},
		{"directory of 4 GiB", file(len(magic)+12, ^uint32(0)), Truncated},
		{"block map outside", file(len(magic)+20, 1<<30), Truncated},
		{"directory's block outside", file(3*pdbfile.Block, 1<<30), BadBlock},
		{"no directory", file(len(magic)+12, 0), Truncated},
		{"too many streams", file(directory, 1<<30), TooLarge},
		{"stream of 2 GiB", file(directory+4, 1<<31), Truncated},
		{"stream's block outside", file(directory+4+4*8+4*2, 1<<30), BadBlock},
		{"file cut", example().Bytes()[:directory], BadBlock},
		{"no DBI stream", streams(func(s [][]byte) [][]byte { return s[:2] }), NoStream},
		{"info stream cut", streams(func(s [][]byte) [][]byte { s[1] = s[1][:27]; return s }), Truncated},
		{"old info", put(1, 0, 19970604), BadVersion},
		{"DBI stream cut", streams(func(s [][]byte) [][]byte { s[3] = s[3][:63]; return s }), Truncated},
		{"old DBI", put(3, 4, 19970606), BadVersion},
		{"modules larger than the stream", put(3, 24, ^uint32(0)), Truncated},
		{"debug streams larger than the stream", put(3, 48, 1<<20), Truncated},
		{"no debug streams", put(3, 48, 0), NoStream},
		{"moved", moved.Bytes(), Unsupported},
	} {
		_, err := New(c.b, "x.pdb")
		var e *Error
		expect.True(t, errors.As(err, &e) && e.Reason == c.want, "%s: %v, want %v", c.name, err, c.want)
	}
	for _, c := range []struct {
		name  string
		b     []byte
		names int
		want  Reason
	}{
		{"a public longer than the rest",
			streams(func(s [][]byte) [][]byte { s[5] = s[5][:len(s[5])-4]; return s }), 3, Truncated},
		{"a record of no length",
			streams(func(s [][]byte) [][]byte { s[5][0], s[5][1] = 0, 0; return s }), 2, Truncated},
		{"a module larger than its stream",
			streams(func(s [][]byte) [][]byte { s[9] = s[9][:8]; return s }), 1, Truncated},
		{"no records", streams(func(s [][]byte) [][]byte { s[3][20] = 99; return s }), 2, NoStream},
	} {
		f, err := New(c.b, "x.pdb")
		must.Equal(t, err, nil, c.name)
		got, err := f.Symbols()
		var e *Error
		expect.True(t, len(got) == c.names && errors.As(err, &e) && e.Reason == c.want,
			"%s: %d names, %v", c.name, len(got), err)
	}
}

// Streams that share their blocks are not copied without bound.
func TestSharedBlocks(t *testing.T) {
	e := example()
	e.Modules[1].Procedures = slices.Repeat(e.Modules[1].Procedures, 50)
	for range 1000 {
		e.Modules = append(e.Modules, pdbfile.Module{})
	}
	b := e.Bytes()
	f := must.Get(New(b, ""))(t)
	for i := range f.modules {
		f.modules[i] = f.modules[1]
	}
	var refused *Error
	got, err := f.Symbols()
	expect.True(t, errors.As(err, &refused) && refused.Reason == TooLarge && len(got) <= len(b)/8,
		"%d names of %d bytes, %v", len(got), len(b), err)
}

func TestReasons(t *testing.T) {
	for r := NotPDB; r <= Unsupported; r++ {
		expect.True(t, r.String() != "reason?", "reason %d has no text", r)
	}
	expect.True(t, Reason(0).String() == "reason?" && Reason(99).String() == "reason?", "unknown reasons")
}

// newest is the first of some commands that is there.
func newest(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	t.Skipf("SKIPPED-CHECK: no %s", names[0])
	return ""
}

// program has functions in sections of their own, static ones, classes, lines of another file, and many
// functions, so that its streams have many blocks.
func program() string {
	var b strings.Builder
	b.WriteString(`namespace outer { struct Shape { virtual ~Shape(); __declspec(noinline) int area(int a); static int count; };
Shape::~Shape() { count--; }
int Shape::count;
int Shape::area(int a) { if (a > 3)
    return count * a;
  return 1; } }
__declspec(noinline) static int hidden(int a) { return a * 3 + 1; }
extern "C" int _fltused = 0, table[9] = {1};
void operator delete(void*, unsigned long long) {}
#line 500 "other.h"
extern "C" __declspec(dllexport) int exported(int a) { outer::Shape s; return s.area(hidden(a)); }
#line 1 "many.cc"
`)
	for i := range 400 {
		fmt.Fprintf(&b, "int many%d(int a) { a += table[a %% 9];\n  for (int i = 0; i < a; i++) table[i %% 9] ^= %d;\n  return hidden(a) + many%d(a - 1); }\n", i, i, max(0, i-1))
	}
	return strings.ReplaceAll(b.String(), "#line 1", "int many0(int);\n#line 1")
}

var (
	numbered  = regexp.MustCompile(`(\d+) \| (S_\w+) .*` + "`(.*)`")
	addressOf = regexp.MustCompile(`addr = 0001:(\d+)(?:, code size = (\d+))?`)
	rangeOf   = regexp.MustCompile(`^\s+0001:([0-9A-F]{8})-([0-9A-F]{8}), line/addr entries = \d+`)
	fileOf    = regexp.MustCompile(`^(\S.*) \((?:MD5|SHA-1|SHA-256|no checksum)`)
	entryOf   = regexp.MustCompile(`(\d+) ([0-9A-F]{8})`)
)

// Names and lines of a PDB that LLVM's linker wrote are those that LLVM's own reader finds.
func TestReal(t *testing.T) {
	clang, link, judge := newest(t, "clang-19", "clang-16", "clang"),
		newest(t, "lld-link-19", "lld-link-16", "lld-link"), newest(t, "llvm-pdbutil", "llvm-pdbutil-14")
	dir := t.TempDir()
	run := func(argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = dir
		out, err := cmd.Output()
		must.Equal(t, err, nil, "%v: %s", argv, out)
		return string(out)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.cc"), []byte(program()), 0o644))
	run(clang, "--target=x86_64-windows-msvc", "-g", "-gcodeview", "-O1", "-fno-rtti",
		"-ffunction-sections", "-c", "a.cc", "-o", "a.obj")
	run(link, "/dll", "/debug", "/noentry", "/force:unresolved", "/out:a.dll", "/pdb:a.pdb", "a.obj")
	f, err := Open(filepath.Join(dir, "a.pdb"))
	must.Do(t, err)
	text := f.sections[0].rva
	want := map[Symbol]bool{}
	var name, kind string
	dump := run(judge, "dump", "-publics", "-symbols", "a.pdb")
	for line := range strings.Lines(dump) {
		if m := numbered.FindStringSubmatch(line); m != nil {
			kind, name = m[2], m[3]
		}
		m := addressOf.FindStringSubmatch(line)
		if m == nil || kind != "S_PUB32" && kind != "S_GPROC32" && kind != "S_LPROC32" {
			continue
		}
		offset, _ := strconv.ParseUint(m[1], 10, 32)
		size, _ := strconv.ParseUint("0"+m[2], 10, 32)
		want[Symbol{text + uint32(offset), uint32(size), name}] = true
	}
	symbols, err := f.Symbols()
	expect.True(t, err == nil && len(symbols) == len(want) && len(want) >= 800,
		"%d names, want %d; %v", len(symbols), len(want), err)
	for _, s := range symbols {
		expect.True(t, want[s], "%+v: the judge does not have it", s)
	}
	checkLines(t, f, text, run(judge, "dump", "-l", "a.pdb"))
}

// checkLines compares the line at each byte of each function.
func checkLines(t *testing.T, f *File, text uint32, dump string) {
	checked, wrong, file := 0, 0, ""
	var entries [][2]uint64
	var start, end uint64
	flush := func() {
		for i, e := range entries {
			next := end
			if i+1 < len(entries) {
				next = entries[i+1][0]
			}
			for at := e[0]; at < next; at++ {
				checked++
				got, line := f.Line(text + uint32(at))
				if hidden := e[1] >= firstHidden || e[1] == 0; hidden && got != "" ||
					!hidden && (got != file || uint64(line) != e[1]) {
					if wrong++; wrong < 10 {
						t.Errorf("%#x: %s:%d, want %s:%d", at, got, line, file, e[1])
					}
				}
			}
		}
		entries = nil
	}
	for line := range strings.Lines(dump) {
		line = strings.TrimRight(line, "\n")
		if m := fileOf.FindStringSubmatch(line); m != nil {
			flush()
			file = m[1]
		} else if m := rangeOf.FindStringSubmatch(line); m != nil {
			flush()
			start, _ = strconv.ParseUint(m[1], 16, 32)
			end, _ = strconv.ParseUint(m[2], 16, 32)
		} else if !strings.Contains(line, "|") {
			for _, m := range entryOf.FindAllStringSubmatch(line, -1) {
				at, _ := strconv.ParseUint(m[2], 16, 32)
				number, _ := strconv.ParseUint(m[1], 10, 32)
				if at >= start {
					entries = append(entries, [2]uint64{at, number})
				}
			}
		}
	}
	flush()
	expect.Figures(t, checked >= 10000, "%d bytes of code compared, %d wrong", checked, wrong)
}
