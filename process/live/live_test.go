package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestParseMaps(t *testing.T) {
	const text = `55d0c0a00000-55d0c0a01000 r-xp 00001000 fd:00 1234                       /usr/bin/a program
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
7f0000001000-7f0000002000 r-xs 00002000 00:01 77                         /memfd:doublemapper (deleted)
7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]
`
	want := []Mapping{
		{0x55d0c0a00000, 0x55d0c0a01000, 0x1000, 1234, true, "/usr/bin/a program", 0},
		{0x7f0000000000, 0x7f0000001000, 0, 0, false, "", 0},
		{0x7f0000001000, 0x7f0000002000, 0x2000, 77, true, "/memfd:doublemapper (deleted)", 0},
		{0x7fff00000000, 0x7fff00002000, 0, 0, true, "[vdso]", 0},
	}
	got, err := ParseMaps(strings.NewReader(text))
	expect.True(t, err == nil && cmptest.Diff(want, got) == "", "%v\n got %+v\nwant %+v", err, got, want)
}

func TestParseMapsMalformed(t *testing.T) {
	good := "1000-2000 r-xp 0 00:00 0 /a\n"
	for name, line := range map[string]string{
		"no range":         "1000 r-xp 0 00:00 0",
		"backwards":        "2000-1000 r-xp 0 00:00 0",
		"not a number":     "10g0-2000 r-xp 0 00:00 0",
		"number too long":  "111111111111111111111-2 r-xp 0 00:00 0",
		"short perms":      "1000-2000 r 0 00:00 0",
		"cut":              "1000-2000 r-xp",
		"upper-case digit": "1000-2F00 r-xp 0 00:00 0",
	} {
		got, err := ParseMaps(strings.NewReader(good + line + "\n"))
		expect.True(t, err != nil && len(got) == 1,
			"%s: %d mappings before the fault, error %v", name, len(got), err)
	}
}

func TestManagedRanges(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "/memfd:doublemapper (deleted)": true, "/app/System.Private.CoreLib.dll": true,
		"/app/X.DLL": true, "/lib/libc.so.6": false, "[vdso]": false,
	} {
		expect.Equal(t, isManaged(&Mapping{Path: path}), want, "%q", path)
	}
}

// A compressed single-file program has its precompiled code in shared memory of no file.
func TestSharedMemory(t *testing.T) {
	table := NewLoader(0).Table([]Mapping{{Start: 0x1000, End: 0x2000, Inode: 7, Exec: true,
		Path: "/dev/zero (deleted)"}})
	expect.True(t, table.IsManaged(0x1800) && table.Len() == 0, "%d modules", table.Len())
}

func TestUnreadableModule(t *testing.T) {
	l := NewLoader(0)
	table := l.Table([]Mapping{{Start: 0x1000, End: 0x2000, Exec: true, Path: "/no/such/file.so"}})
	if i := table.Find(0x1800); i < 0 || table.At(i).Err == nil {
		t.Error("a module that cannot be read must keep its range and say why")
	}
}

// TestPageSizes: a code segment is recognized by its mapping, however large the system's pages are. The
// segments are those of .NET 10.0.9 for ARM64. A mapping behind all segments has no bias.
func TestPageSizes(t *testing.T) {
	const base, off, addr, size = 0xffff00000000, 0x315180, 0x325180, 0x74edc0
	f := must.Get(elf.New((&elfasm.File{Machine: elfasm.ARM64, Segments: []elfasm.Segment{
		{Type: elfasm.Load, Flags: 4, FileSize: 0x315148, MemSize: 0x315148},
		{Type: elfasm.Load, Flags: elfasm.ReadExecute, Off: off, Addr: addr, FileSize: size, MemSize: size},
	}}).Bytes(), "x"))(t)
	for _, page := range []uint64{4 << 10, 16 << 10, 64 << 10} {
		m := Mapping{Start: base + addr&^(page-1), End: base + (addr+size+page-1)&^(page-1),
			Offset: off &^ (page - 1)}
		got, err := bias(f, &m)
		expect.True(t, err == nil && got == base, "pages of %d bytes: bias %#x, %v", page, got, err)
		m.Offset += m.End - m.Start
		_, err = bias(f, &m)
		expect.True(t, errors.Is(err, errOutside), "pages of %d bytes, behind the code: %v", page, err)
	}
}
