package inspect

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/peasm"
)

const dwarfBase = peasm.Base

// dwarfImage returns a PE file with code at 1000h. Its exception directory has one entry, for
// [1000h,1010h). It has one section of DWARF, whose long name is in the string table.
func dwarfImage(machine uint16, name string, frames []byte) []byte {
	text := peasm.NewSection(".text", 0x1000).Bytes(bytes.Repeat([]byte{0x90}, 0x40)...)
	exception := peasm.Directory{RVA: 0x1100, Size: peamd64.EntrySize}
	if text.Goto(0x1100); machine == pe.MachineARM64 {
		text.U32(0x1000, 1|0x10/4<<2) // packed
		exception.Size = pearm64.EntrySize
	} else {
		text.U32(0x1000, 0x1010, 0x1180)
	}
	text.Goto(0x1180).Bytes(1, 4, 1, 0, 4, 0x42, 0, 0).Goto(0x1200) // sub rsp, 28h
	dwarf := peasm.Raw(name, 0x2000, frames)
	dwarf.Flags = 0x42000040
	im := peasm.File{Machine: machine, Sections: []*peasm.Section{text, dwarf},
		Dirs: map[int]peasm.Directory{peasm.Exception: exception}, Size: 0x4000}
	return im.Bytes()
}

// debugFrames is a .debug_frame of functions [begin, begin+10h).
func debugFrames(begins ...uint64) []byte {
	le := binary.LittleEndian
	b := []byte{20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0}
	for _, at := range begins {
		b = append(b, 28, 0, 0, 0, 0, 0, 0, 0)
		b = le.AppendUint64(le.AppendUint64(b, dwarfBase+at), 16)
		b = append(b, 0x44, 0x0e, 48, 0, 0, 0, 0, 0)
	}
	return b
}

func zdebug(t *testing.T, data []byte, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("ZLIB")
	b.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	z := zlib.NewWriter(&b)
	_, err := z.Write(data)
	must.Do(t, err)
	must.Do(t, z.Close())
	return b.Bytes()
}

// TestWhatGoverns: inspect shows both kinds of unwind data of an image, and which kind the walkers use.
func TestWhatGoverns(t *testing.T) {
	plain, long := debugFrames(0x1000, 0x1020), debugFrames(0x1000, 0x1020)
	for _, c := range []struct {
		name    string
		machine uint16
		section string
		frames  []byte
		at      string
		from    string // what is shown first
		governs string // its beginning
		also    string // what is shown beside it
	}{
		{"both", pe.MachineAMD64, ".debug_frame", plain, "0x1004", "RUNTIME_FUNCTION [0x1000,0x1010)",
			"the exception directory", "FDE at offset 0x18 of .debug_frame"},
		{"FDE alone", pe.MachineAMD64, ".debug_frame", plain, "0x1024",
			"FDE at offset 0x38 of .debug_frame", "the FDE;", ""},
		{"entry alone", pe.MachineAMD64, ".debug_frame", debugFrames(0x1020), "0x1004",
			"RUNTIME_FUNCTION [0x1000,0x1010)", "the exception directory; no FDE", ""},
		{"compressed and both", pe.MachineAMD64, ".zdebug_frame", zdebug(t, long, len(long)), "0x1004",
			"RUNTIME_FUNCTION", "the exception directory", "FDE at offset 0x18 of .zdebug_frame"},
		{"compressed alone", pe.MachineAMD64, ".zdebug_frame", zdebug(t, long, len(long)), "0x1024",
			"FDE at offset 0x38 of .zdebug_frame", "the FDE;", ""},
		{"ARM64", pe.MachineARM64, ".debug_frame", plain, "0x1024",
			"FDE at offset 0x38 of .debug_frame", "the FDE;", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			im := must.Get(Open(inFile(t, dwarfImage(c.machine, c.section, c.frames))))(t)
			f := must.Get(im.At(c.at))(t)
			expect.True(t, strings.HasPrefix(f.From, c.from) && strings.HasPrefix(f.Governs, c.governs) &&
				f.Governs != "", "from %q, walked by %q", f.From, f.Governs)
			if (f.Also != nil) != (c.also != "") ||
				f.Also != nil && (f.Also.From != c.also || f.Also.Lo != f.Lo || len(f.Also.Data) != 2) {
				t.Errorf("beside it %v, want %q", f.Also != nil, c.also)
			}
			if c.at == "0x1024" && (f.Lo != 0x1020 || len(f.Lines) == 0 ||
				c.machine == pe.MachineAMD64 && f.Data[0] != "1020-1024  cfa rsp+8      ra [cfa-8]") {
				t.Errorf("[%#x,%#x), %d lines, rows %q", f.Lo, f.Hi, len(f.Lines), f.Data)
			}
		})
	}
}

// TestNeitherGoverns: if neither kind covers an address, the error names both.
func TestNeitherGoverns(t *testing.T) {
	im := must.Get(Open(inFile(t, dwarfImage(pe.MachineAMD64, ".debug_frame", debugFrames(0x1020)))))(t)
	_, err := im.At("0x1030")
	expect.True(t, err != nil && strings.Contains(err.Error(), "no entry") &&
		strings.Contains(err.Error(), "no FDE"), "%v", err)
}

// TestCheckDWARF: a check reads the DWARF sections of a PE image too.
func TestCheckDWARF(t *testing.T) {
	bad := debugFrames(0x1000, 0x1020)
	bad[len(bad)-8] = 0x3c // no opcode
	cut := debugFrames(0x1000, 0x1020)
	for _, c := range []struct {
		name      string
		section   string
		frames    []byte
		entries   int
		malformed int
		remark    int
	}{
		{"good", ".debug_frame", debugFrames(0x1000, 0x1020), 3, 0, 1},
		{"all have an entry", ".debug_frame", debugFrames(0x1000), 2, 0, 0},
		{"unknown opcode", ".debug_frame", bad, 3, 1, 1},
		{"cut", ".debug_frame", cut[:len(cut)-9], 2, 1, 0},
		{"nothing but damage", ".debug_frame", cut[:23], 1, 1, 0},
		{"compressed", ".zdebug_frame", zdebug(t, cut, len(cut)), 3, 0, 1},
		{"compressed and bad", ".zdebug_frame", zdebug(t, bad, len(bad)), 3, 1, 1},
		{"another size", ".zdebug_frame", zdebug(t, cut, len(cut)+1), 1, 1, 0},
		{"grows without end", ".zdebug_frame", zdebug(t, cut, 1<<40), 1, 1, 0},
		{"not compressed", ".zdebug_frame", cut, 1, 1, 0},
		{"empty", ".zdebug_frame", []byte("ZLIB"), 1, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must.Get(CheckFile(inFile(t, dwarfImage(pe.MachineAMD64, c.section, c.frames))))(t)
			expect.True(t, got.Entries == c.entries && got.Count(Malformed) == c.malformed &&
				got.Count(Remark) == c.remark && got.Count(Contradictory) == 0,
				"%d entries, %+v", got.Entries, got.Findings)
		})
	}
}

// TestFunctionOutsideCode: an FDE whose begin is no RVA is reported. The begin is not cut to 32 bits.
func TestFunctionOutsideCode(t *testing.T) {
	got := must.Get(CheckFile(inFile(t,
		dwarfImage(pe.MachineAMD64, ".debug_frame", debugFrames(0x1000, 1<<32+0x1020)))))(t)
	expect.True(t, got.Count(Contradictory) == 1 && got.Count(Remark) == 0, "%+v", got.Findings)
}

// TestMingw checks images from mingw's linker, which are also seeds of the fuzzers.
func TestMingw(t *testing.T) {
	for _, c := range []struct {
		file    string
		entries int
		fdes    int
		governs string
		also    bool
	}{
		{"amd64-dwarf.dll", 22, 11, "the exception directory", true},
		{"amd64-nopdata.dll", 11, 11,
			"the FDE; no entry of the exception directory covers this address", false},
		{"amd64.dll", 11, 0, "", false},
	} {
		path := filepath.Join("..", "..", "fuzz", "testdata", "seeds", c.file)
		got := must.Get(CheckFile(path))(t)
		expect.True(t, got.Entries == c.entries &&
			got.Count(Malformed)+got.Count(Contradictory)+got.Count(Overlapping) == 0,
			"%s: %d entries, %+v", c.file, got.Entries, got.Findings)
		im := must.Get(Open(path))(t)
		f := must.Get(im.At("saves"))(t)
		expect.True(t, f.Governs == c.governs && (f.Also != nil) == c.also && f.Name == "saves",
			"%s: %s walked by %q, also %v", c.file, f.Name, f.Governs, f.Also != nil)
		for _, name := range []string{"leaf", "saves", "large", "floats", "calls_last"} {
			if f, err := im.At(name); err != nil {
				t.Error(err)
			} else if c.also {
				sameEffect(t, c.file, f)
			}
		}
	}
}

// sameEffect compares the two kinds of unwind data of one function, which different parts of one compiler
// wrote.
func sameEffect(t *testing.T, file string, f *Function) {
	t.Helper()
	must.True(t, len(f.Lines) != 0 && len(f.Lines) == len(f.Also.Lines),
		"%s: %d lines and %d", file, len(f.Lines), len(f.Also.Lines))
	for i, l := range f.Lines {
		if l.Text == "nop" {
			continue // behind a tail jump: it never runs
		}
		if also := f.Also.Lines[i]; l.CFA != also.CFA || l.Saved != also.Saved {
			t.Errorf("%s %#x: %s, %s; DWARF says %s, %s", file, l.Addr, l.CFA, l.Saved, also.CFA, also.Saved)
		}
	}
}

// TestGoForWindows checks an image from Go's linker: all functions have DWARF, in a compressed section.
func TestGoForWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED-CHECK: builds a Go program for Windows, half a minute when nothing of it is cached")
	}
	compiler := needs.Command(t, "go")
	exe := filepath.Join(t.TempDir(), "seed.exe")
	build := exec.Command(compiler, "build", "-trimpath", "-o", exe,
		filepath.Join("..", "..", "fuzz", "testdata", "seeds", "seed.go"))
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	must.Run(t, build)
	got := must.Get(CheckFile(exe))(t)
	im := must.Get(Open(exe))(t)
	counts := map[string]int{}
	for _, c := range im.Summary().Counts {
		counts[c.Name] = c.N
	}
	n := counts["FDEs of .zdebug_frame"]
	expect.True(t, n >= 1000 && got.Entries == n+counts["entries of the exception directory"],
		"%v, checked %d", counts, got.Entries)
	expect.Equal(t, got.Count(Malformed), 0, got.Findings)
}
