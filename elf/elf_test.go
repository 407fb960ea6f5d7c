package elf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestHeaderErrors(t *testing.T) {
	good := (&image{}).bytes()
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name, structure string
		data            []byte
	}{
		{"empty", "ELF header", nil},
		{"magic", "ELF header", change(0, 0)},
		{"cut", "ELF header", good[:63]},
		{"32-bit", "EI_CLASS", change(4, 1)},
		{"big-endian", "EI_DATA", change(5, 2)},
		{"RISC-V", "e_machine", change(18, 243)},
	} {
		f, err := New(c.data, "x")
		var fe *FormatError
		expect.True(t, f == nil && errors.As(err, &fe) && fe.Structure == c.structure && fe.Name == "x",
			"%s: %v", c.name, err)
	}
	if f := mustNew(t, good); f.Arch() != context.ArchAMD64 || f.Entry() != 0x1234 || len(f.Problems()) != 0 {
		t.Errorf("%v %#x %v", f.Arch(), f.Entry(), f.Problems())
	}
	f := mustNew(t, change(16, typeRelocatable))
	expect.True(t, len(f.Problems()) == 1, "not linked: %v", f.Problems())
	f = mustNew(t, (&image{machine: 183}).bytes())
	expect.True(t, f.Arch() == context.ArchARM64, "arch %v", f.Arch())
}

// TestDamagedParts: what is damaged is named, the rest is kept.
func TestDamagedParts(t *testing.T) {
	le := binary.LittleEndian
	build := func() []byte {
		im := image{segments: []program{{typ: ptLoad, flags: 5}}}
		im.section(sectionHeader{name: ".eh_frame", typ: 1, addr: 0x40}, []byte("frames"))
		return im.bytes()
	}
	for _, c := range []struct {
		name, structure string
		damage          func(b []byte) []byte
		sections        bool // .eh_frame can still be read by name
		segments        int
	}{
		{"section headers outside", "section header",
			func(b []byte) []byte { le.PutUint64(b[40:], 1<<40); return b }, false, 1},
		{"section headers that wrap", "section header",
			func(b []byte) []byte { le.PutUint64(b[40:], ^uint64(0)-10); return b }, false, 1},
		{"names index", "e_shstrndx", func(b []byte) []byte { le.PutUint16(b[62:], 99); return b }, false, 1},
		{"section header size", "e_shentsize",
			func(b []byte) []byte { le.PutUint16(b[58:], 8); return b }, false, 1},
		{"program headers outside", "program header",
			func(b []byte) []byte { le.PutUint64(b[32:], 1<<40); return b }, true, 0},
		{"program header size", "e_phentsize",
			func(b []byte) []byte { le.PutUint16(b[54:], 8); return b }, true, 0},
		{"segment that wraps", "PT_LOAD",
			func(b []byte) []byte { le.PutUint64(b[64+16:], ^uint64(0)); return b }, true, 0},
		{"too many sections claimed", "section header",
			func(b []byte) []byte { le.PutUint16(b[60:], 0xfff0); return b }, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustNew(t, c.damage(build()))
			_, _, err := f.Section(".eh_frame")
			expect.True(t, (err == nil) == c.sections && len(f.Segments()) == c.segments,
				"section %v, %d segments", err, len(f.Segments()))
			var fe *FormatError
			expect.True(t, len(f.Problems()) != 0 && errors.As(f.Problems()[0], &fe) &&
				fe.Structure == c.structure, "problems %v", f.Problems())
		})
	}
}

func TestEveryTruncation(t *testing.T) {
	im := image{segments: []program{{typ: ptLoad, flags: 5}, {typ: ptNote, off: 64, filesz: 32, memsz: 32}}}
	im.section(sectionHeader{name: ".debug_frame", typ: 1, flags: shfCompressed},
		chdr(1, 5, zlibBytes(t, []byte("frame"))))
	im.section(sectionHeader{name: ".symtab", typ: shtSymtab, link: 1}, make([]byte, 48))
	whole := im.bytes()
	for n := range whole {
		for _, load := range []func() (*File, error){
			func() (*File, error) { return New(whole[:n:n], "cut") },
			func() (*File, error) { return FromMemory(whole[:n:n], 0x7f0000000000, "cut") },
		} {
			f, err := load()
			must.Equal(t, err == nil, n >= 64, "cut at %d: %v", n, err)
			if f == nil {
				continue
			}
			f.CFISections()
			for range f.Symbols(false) {
			}
			for range f.Symbols(true) {
			}
		}
	}
}

func TestCompressedSections(t *testing.T) {
	body := bytes.Repeat([]byte("call frame information "), 100)
	n := uint64(len(body))
	gnu := func(size uint64, data []byte) []byte {
		return append(binary.BigEndian.AppendUint64([]byte("ZLIB"), size), data...)
	}
	z, zs := zlibBytes(t, body), zstdBytes(t, body)
	for _, c := range []struct {
		name, section string
		flags         uint64
		data          []byte
		ok            bool
	}{
		{"plain", ".debug_frame", 0, body, true},
		{"zlib", ".debug_frame", shfCompressed, chdr(compressZlib, n, z), true},
		{"zstd", ".debug_frame", shfCompressed, chdr(compressZstd, n, zs), true},
		{"zdebug", ".zdebug_frame", 0, gnu(n, z), true},
		{"unknown kind", ".debug_frame", shfCompressed, chdr(3, n, z), false},
		{"header cut", ".debug_frame", shfCompressed, chdr(1, n, nil)[:20], false},
		{"zlib size too small", ".debug_frame", shfCompressed, chdr(compressZlib, n-1, z), false},
		{"zlib size too large", ".debug_frame", shfCompressed, chdr(compressZlib, n+1, z), false},
		{"zlib size absurd", ".debug_frame", shfCompressed, chdr(compressZlib, 1<<62, z), false},
		{"zlib size large", ".debug_frame", shfCompressed, chdr(compressZlib, MaxSection, z), false},
		{"zstd size large", ".debug_frame", shfCompressed, chdr(compressZstd, MaxSection, zs), false},
		{"zstd size absurd", ".debug_frame", shfCompressed, chdr(compressZstd, 1<<62, zs), false},
		{"zlib cut", ".debug_frame", shfCompressed, chdr(compressZlib, n, z[:len(z)-6]), false},
		{"zlib garbage", ".debug_frame", shfCompressed, chdr(compressZlib, n, zs), false},
		{"zstd size too small", ".debug_frame", shfCompressed, chdr(compressZstd, n-1, zs), false},
		{"zstd size too large", ".debug_frame", shfCompressed, chdr(compressZstd, n+1, zs), false},
		{"zstd cut", ".debug_frame", shfCompressed, chdr(compressZstd, n, zs[:len(zs)-6]), false},
		{"zdebug without magic", ".zdebug_frame", 0, body, false},
		{"zdebug size absurd", ".zdebug_frame", 0, gnu(^uint64(0), z), false},
		{"zdebug of three bytes", ".zdebug_frame", 0, []byte("ZLI"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var im image
			im.section(sectionHeader{name: c.section, typ: 1, flags: c.flags}, c.data)
			f := mustNew(t, im.bytes())
			got, _, err := f.Section(".debug_frame")
			if c.ok && (err != nil || !bytes.Equal(got, body)) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			var fe *FormatError
			if !c.ok && (got != nil || !errors.As(err, &fe)) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			s := f.CFISections()
			if (s.Err == nil) != c.ok || c.ok && !bytes.Equal(s.DebugFrame, body) {
				t.Errorf("CFISections: %v", s.Err)
			}
		})
	}
}

func TestNoSection(t *testing.T) {
	f := mustNew(t, (&image{}).bytes())
	_, _, err := f.Section(".eh_frame")
	expect.True(t, errors.Is(err, ErrNoSection), "%v", err)
	var im image
	im.section(sectionHeader{name: ".eh_frame", typ: shtNobits}, nil)
	b, _, err := mustNew(t, im.bytes()).Section(".eh_frame")
	expect.True(t, err != nil, "bytes of a section without bytes: %v", b)
}

func note(name string, typ uint32, desc []byte, align int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(name)))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = append(le.AppendUint32(b, typ), name...)
	pad := func() {
		for len(b)%align != 0 {
			b = append(b, 0)
		}
	}
	pad()
	b = append(b, desc...)
	pad()
	return b
}

func TestBuildID(t *testing.T) {
	id := note("GNU\x00", 3, []byte{0xab, 0xcd}, 4)
	for _, c := range []struct {
		name  string
		notes []byte
		align uint64
		want  string
	}{
		{"alone", id, 4, "abcd"},
		{"after others", append(append(note("GNU\x00", 5, []byte("xyz"), 4),
			note("Go\x00\x00", 4, []byte("12345"), 4)...), id...), 4, "abcd"},
		{"aligned to 8", append(note("GNU\x00", 5, make([]byte, 12), 8),
			note("GNU\x00", 3, []byte{1}, 8)...), 8, "01"},
		{"another owner", note("ABC\x00", 3, []byte{1}, 4), 4, ""},
		{"cut", id[:14], 4, ""},
		{"size lies", binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil,
			0xffffffff), 3), 4, ""},
		{"two", slices.Concat(id, note("GNU\x00", 3, []byte{7}, 4)), 4, "abcd"},
		{"too long", note("GNU\x00", 3, make([]byte, 65), 4), 4, ""},
	} {
		im := image{}
		im.section(sectionHeader{name: ".note", typ: shtNote, addrAlign: c.align}, c.notes)
		f := mustNew(t, im.bytes())
		expect.True(t, f.BuildID() == c.want, "%s: %q, want %q", c.name, f.BuildID(), c.want)
	}
}

// An image of Go's linker is known by its note, whatever else notes say and wherever it is.
func TestGo(t *testing.T) {
	id, mine := note("GNU\x00", 3, []byte{0xab, 0xcd}, 4), note("Go\x00\x00", 4, []byte("12345"), 4)
	for _, c := range []struct {
		name  string
		notes []byte
		want  bool
	}{
		{"alone", mine, true},
		{"behind a build id", slices.Concat(id, mine), true},
		{"before one", slices.Concat(mine, id), true},
		{"another's", note("Go\x00\x00", 3, []byte("12345"), 4), false},
		{"another name", note("Gox\x00", 4, []byte("12345"), 4), false},
		{"none", id, false},
		{"cut", mine[:14], false},
		{"nothing", nil, false},
	} {
		im := image{}
		im.section(sectionHeader{name: ".note", typ: shtNote, addrAlign: 4}, c.notes)
		f := mustNew(t, im.bytes())
		expect.Equal(t, f.Go(), c.want, c.name)
		if strings.Contains(c.name, "build id") && f.BuildID() != "abcd" {
			t.Errorf("%s: build id %q", c.name, f.BuildID())
		}
	}
}

// A real, stripped library of Go, and this test, a program of Go.
func TestGoLinked(t *testing.T) {
	own, err := os.Executable()
	must.Do(t, err)
	f, err := Open(own)
	expect.True(t, err == nil && f.Go(), "%s: %v", own, err)
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	if f, err := Open(libc); err == nil && f.Go() {
		t.Errorf("%s is of Go", libc)
	}
	out := filepath.Join(t.TempDir(), "lib.so")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w -extldflags=-Wl,--strip-all",
		"-o", out, "../profiler/testdata/golib")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: no library of Go can be built here: %v %s", err, b)
	}
	f, err = Open(out)
	expect.True(t, err == nil && f.Go(), "a stripped library is not seen to be of Go, %v", err)
}

func TestBytesAt(t *testing.T) {
	im := image{segments: []program{
		{typ: ptLoad, flags: 4, off: 0, vaddr: 0x400000, filesz: 0x40, memsz: 0x40},
		{typ: ptLoad, flags: 5, off: 0x40, vaddr: 0x401040, filesz: 0x20, memsz: 0x2000},
		{typ: ptLoad, flags: 6, off: 1 << 40, vaddr: 0x500000, filesz: 0x20, memsz: 0x20},
	}}
	f := mustNew(t, im.bytes())
	for _, c := range []struct {
		at uint64
		n  int
		ok bool
	}{
		{0x400000, 4, true}, {0x40003c, 4, true}, {0x40003d, 4, false},
		{0x3fffff, 4, false}, {0x401040, 0x20, true},
		{0x401041, 0x20, false}, {0x401060, 1, false}, {0x500000, 1, false},
		{0x400000, -1, false}, {^uint64(0), 8, false},
	} {
		b, ok := f.BytesAt(c.at, c.n)
		if ok != c.ok || ok && len(b) != c.n {
			t.Errorf("BytesAt(%#x, %d) = %d bytes, %v", c.at, c.n, len(b), ok)
		}
	}
	b, _ := f.BytesAt(0x400000, 4)
	expect.True(t, string(b) == "\x7fELF", "%q", b)
	expect.Equal(t, testing.AllocsPerRun(100, func() { f.BytesAt(0x401044, 16) }), 0, "allocations")
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	expect.True(t, err != nil, "a folder was opened")
	_, err = Open(filepath.Join(dir, "none"))
	expect.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
	p := filepath.Join(dir, "image")
	must.Do(t, os.WriteFile(p, (&image{}).bytes(), 0o600))
	f, err := Open(p)
	expect.True(t, err == nil && f.Name() == p, "%v", err)
}

func TestManySections(t *testing.T) {
	im := image{}
	im.section(sectionHeader{name: ".eh_frame", typ: 1}, []byte("x"))
	b := im.bytes()
	le := binary.LittleEndian
	shoff := le.Uint64(b[40:])
	count, names := le.Uint16(b[60:]), le.Uint16(b[62:])
	le.PutUint16(b[60:], 0)
	le.PutUint16(b[62:], 0xffff)
	le.PutUint64(b[shoff+32:], uint64(count))
	le.PutUint32(b[shoff+40:], uint32(names))
	_, _, err := mustNew(t, b).Section(".eh_frame")
	expect.True(t, err == nil, "extended numbering: %v", err)
}
