package pdb

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

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
	clang, link, judge := newest(t, "clang-19", "clang-16", "clang"), newest(t, "lld-link-19", "lld-link-16", "lld-link"), newest(t, "llvm-pdbutil", "llvm-pdbutil-14")
	dir := t.TempDir()
	run := func(argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.cc"), []byte(program()), 0o644))
	run(clang, "--target=x86_64-windows-msvc", "-g", "-gcodeview", "-O1", "-fno-rtti", "-ffunction-sections", "-c", "a.cc", "-o", "a.obj")
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
	if err != nil || len(symbols) != len(want) || len(want) < 800 {
		t.Errorf("%d names, want %d; %v", len(symbols), len(want), err)
	}
	for _, s := range symbols {
		if !want[s] {
			t.Errorf("%+v: the judge does not have it", s)
		}
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
				if hidden := e[1] >= firstHidden || e[1] == 0; hidden && got != "" || !hidden && (got != file || uint64(line) != e[1]) {
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
	t.Logf("%d bytes of code compared, %d wrong", checked, wrong)
	if checked < 10000 {
		t.Errorf("only %d bytes compared", checked)
	}
}
