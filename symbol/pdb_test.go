package symbol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pdbfile"
	"github.com/seedwalk/seedwalk/testkit/peasm"
)

const pdbID = "AABBCCDDEEFF112201020304050607082A"

// windowsProgram is an image, and its PDB: one procedure, and publics of a function, of a leaf function,
// and within a function.
func windowsProgram() (image, db []byte) {
	f := &pdbfile.File{
		GUID: [16]byte{0xdd, 0xcc, 0xbb, 0xaa, 0xff, 0xee, 0x22, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}, Age: 0x2a,
		Sections: []pdbfile.Section{{RVA: 0x1000, Size: 0x1000, Flags: 0x60000020}},
		Publics: []pdbfile.Name{{Segment: 1, Offset: 0x10, Text: "?hidden@shop@@YAXXZ"},
			{Segment: 1, Offset: 0x100, Text: "?get@Item@shop@@QEAAXXZ"},
			{Segment: 1, Offset: 0x120, Text: "label"}, {Segment: 1, Offset: 0x1f0, Text: "leaf"}},
		Modules: []pdbfile.Module{{
			Procedures: []pdbfile.Name{{Segment: 1, Offset: 0x10, Size: 0x40, Text: "shop::hidden"}},
			Lines: []pdbfile.Line{{Segment: 1, Offset: 0x10, Size: 0x40, File: 1,
				Entries: [][2]uint32{{0, 7}, {8, 9}}}},
		}},
		Names: []byte("\x00C:\\src\\shop.cc\x00"),
	}
	return f.Image(`D:\build\shop.pdb`, [2]uint32{0x1010, 0x1050}, [2]uint32{0x1100, 0x1180},
		[2]uint32{0x1200, 0x1240}), f.Bytes()
}

// A PDB is found in folders of each layout and beside its image, by its ID only.
func TestPDBFound(t *testing.T) {
	image, db := windowsProgram()
	other := strings.Replace(string(db), "\xdd\xcc\xbb\xaa", "\xdd\xcc\xbb\xab", 1)
	for _, c := range []struct {
		name, file, content string
		image, found        bool
		refused             int
	}{
		{"nothing", "symbols/x.pdb", string(db), true, false, 0},
		{"beside", "shop.pdb", string(db), true, true, 0},
		{"flat", "symbols/shop.pdb", string(db), true, true, 0},
		{"symbol store", "symbols/shop.pdb/" + pdbID + "/shop.pdb", string(db), true, true, 0},
		{"symbol store in lower case",
			"symbols/shop.pdb/" + strings.ToLower(pdbID) + "/shop.pdb", string(db), true, true, 0},
		{"another build", "symbols/shop.pdb", other, true, false, 1},
		{"no PDB", "shop.pdb", "BSJB", true, false, 1},
		{"cut", "shop.pdb", string(db[:len(db)-600]), true, false, 1},
		{"an image that is not there", "symbols/shop.pdb", string(db), false, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name string, b []byte) string {
				at := filepath.Join(dir, name)
				os.MkdirAll(filepath.Dir(at), 0o755)
				must.Do(t, os.WriteFile(at, b, 0o644))
				return at
			}
			put(c.file, []byte(c.content))
			path := filepath.Join(dir, "shop.dll")
			if c.image {
				put("shop.dll", image)
			}
			r := NewResolver()
			r.Folders = Folders{filepath.Join(dir, "none"), filepath.Join(dir, "symbols")}
			name, ok := r.Name(path, pdbID, 0x1018)
			if ok != c.found || ok && name != "shop::hidden" {
				t.Errorf("%q, %v", name, ok)
			}
			if file, line := r.Line(path, pdbID, 0x1018); (file == `C:\src\shop.cc`) != c.found ||
				c.found && line != 9 {
				t.Errorf("%s:%d", file, line)
			}
			if got := r.Refused(); len(got) != c.refused || len(got) > 0 && got[0].Want != pdbID {
				t.Errorf("refused %v", got)
			}
		})
	}
}

// A public covers its function, or a few bytes where no function is.
func TestPDBNames(t *testing.T) {
	image, db := windowsProgram()
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.dll")
	for name, b := range map[string][]byte{"shop.dll": image, "shop.pdb": db} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	r := NewResolver()
	for _, c := range []struct {
		name string
		addr uint64
		want string
	}{
		{"procedure", 0x1010, "shop::hidden"},
		{"its last byte", 0x104f, "shop::hidden"}, {"behind it", 0x1050, ""},
		{"public", 0x1100, "shop::Item::get"}, {"behind a label", 0x1170, "shop::Item::get"},
		{"behind the function", 0x1180, ""},
		{"leaf", 0x11ff, "leaf"}, {"a function without a name behind a leaf", 0x1200, ""},
		{"header", 0x10, ""}, {"no RVA", 1 << 40, ""},
	} {
		got, _ := r.Name(path, pdbID, c.addr)
		expect.True(t, got == c.want, "%s: %q, want %q", c.name, got, c.want)
	}
	start, end, ok := r.Function(path, pdbID, 0x1230)
	expect.True(t, ok && start == 0x1200 && end == 0x1240, "function %#x to %#x, %v", start, end, ok)
	expect.Equal(t, r.DebugFile(path, pdbID), "shop.pdb", "debug file")
	_, ok = r.Name(path, strings.Replace(pdbID, "A", "B", 1), 0x1010)
	expect.True(t, !ok, "an image of another build has a name")
}

// The names that a compiler gave, and those that LLVM's undecorator makes of them.
func TestUndecorate(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "?use@@YAXXZ": "use", "?over@@YAXN@Z": "over",
		"?f@S@b@a@@QEAAHAEAU123@PEAU123@@Z": "a::b::S::f", "?h@In@S@b@a@@QEAAXXZ": "a::b::S::In::h",
		"??0S@b@a@@QEAA@XZ": "a::b::S::S", "??1S@b@a@@QEAA@XZ": "a::b::S::~S",
		"?a_@a@11@QEAAXXZ": "a::a::a::a_", "?b@0a@@YAXH@Z": "a::b::b",
		"?afree@?A0x313AD336@@YAXXZ":    "`anonymous namespace'::afree",
		"?m@Anon@?A0x313AD336@@QEAAXXZ": "`anonymous namespace'::Anon::m",
	} {
		expect.Equal(t, undecorate(name), want, name)
	}
	for _, name := range []string{"", "?", "??", "?@", "?9@", "?a", "?a@", "??0", "??0@", "?a@?A", "?a@?A@",
		"?a@5@", "??BS@b@a@@QEAA_NXZ", "??$t@H@S@b@a@@QEAAHH@Z",
		"?push@?$V@US@b@a@@@@QEAAXUS@b@a@@@Z", "?" + strings.Repeat("a@", 1000), strings.Repeat("?", 1<<14)} {
		expect.Equal(t, undecorate(name), name)
	}
}

// In an ARM64 image, a name covers its function, too.
func TestPENamesOfARM64(t *testing.T) {
	text := peasm.NewSection(".text", 0x1000).Zero(0x1000)
	text.Flags = peasm.CodeFlags
	data := peasm.NewSection(".rdata", 0x10000).Label("dll").Text("x.dll").Label("work").Text("work").Align(8)
	data.Label("exports").U32(0, 0, 0).AtLabel("dll").U32(1, 1, 1).AtLabel("addresses", "names", "ordinals")
	data.Label("addresses").U32(0x1100).Label("names").AtLabel("work").Label("ordinals").U16(0).Align(8)
	data.Label("functions").U32(0x1100, 1|0x100/4<<2).U32(0x1200).AtLabel("record") // packed: 100h bytes
	data.Label("record").U32(0x80/4|1<<21|1<<27, 0xe4e4e4e4)                        // 80h bytes
	f := must.Get(pe.New((&peasm.File{Machine: peasm.ARM64, Sections: []*peasm.Section{text, data},
		Dirs: map[int]peasm.Directory{peasm.Export: {Label: "exports", Size: 40},
			peasm.Exception: {Label: "functions", Size: 16}}}).Bytes(), "x.dll"))(t)
	table, cover := PE(f, nil), peCover(f)
	for at, want := range map[uint64]string{0x10ff: "", 0x1100: "work", 0x11ff: "work", 0x1200: ""} {
		name, _, _ := table.Find(at)
		expect.Equal(t, name, want, "%#x", at)
	}
	start, end, ok := cover(0x1210)
	expect.True(t, ok && start == 0x1200 && end == 0x1280, "function %#x to %#x, %v", start, end, ok)
	_, _, ok = cover(0x1280)
	expect.True(t, !ok, "a function behind all others")
}
