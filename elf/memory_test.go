package elf

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const hostLibc = "/lib/x86_64-linux-gnu/libc.so.6"

func readHost(t testing.TB) []byte {
	b, err := os.ReadFile(hostLibc)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no x86-64 libc on this host")
	}
	return b
}

// asMapped lays a file out as the loader does, without relocation.
func asMapped(f *File, data []byte) []byte {
	var end uint64
	for _, s := range f.Segments() {
		end = max(end, s.Vaddr+s.Memsz)
	}
	out := make([]byte, end)
	for _, s := range f.Segments() {
		copy(out[s.Vaddr:], data[s.Off:s.Off+s.Filesz])
	}
	return out
}

// TestFromMemory: a mapped image gives the same as its file, as far as program
// headers go.
func TestFromMemory(t *testing.T) {
	data := readHost(t)
	file := mustNew(t, data)
	const base = 0x7f1200000000
	mem := must.Get(FromMemory(asMapped(file, data), base, "mapped"))(t)
	expect.True(t, mem.Bias() == base && mem.BuildID() == file.BuildID() && mem.BuildID() != "",
		"bias %#x, build ids %q %q", mem.Bias(), mem.BuildID(), file.BuildID())
	a, b := file.CFISections(), mem.CFISections()
	expect.True(t, a.EHFrameAddr == b.EHFrameAddr && bytes.HasPrefix(b.EHFrame, a.EHFrame) &&
		bytes.HasPrefix(b.EHFrameHdr, a.EHFrameHdr[:12]),
		"eh_frame at %#x, %#x in memory", a.EHFrameAddr, b.EHFrameAddr)
	want := map[string]uint64{}
	for s := range file.Symbols(true) {
		want[s.Name] = s.Value
	}
	n := 0
	for s := range mem.Symbols(true) {
		if v, ok := want[s.Name]; !ok || v == 0 && s.Value != 0 {
			t.Fatalf("symbol %q = %#x is not in the file", s.Name, s.Value)
		}
		n++
	}
	expect.True(t, n >= len(want) && n >= 1000, "%d symbols in memory, %d names in the file", n, len(want))
}

// TestRelocatedDynamic: some loaders add the bias to the pointers in
// PT_DYNAMIC in place.
func TestRelocatedDynamic(t *testing.T) {
	data := readHost(t)
	file := mustNew(t, data)
	const base = 0x7f1200000000
	image := asMapped(file, data)
	for i := range file.programs {
		if p := &file.programs[i]; p.typ == ptDynamic {
			relocate(image[p.vaddr:p.vaddr+p.filesz], base)
		}
	}
	mem := must.Get(FromMemory(image, base, "mapped"))(t)
	n := 0
	for s := range mem.Symbols(true) {
		if s.Name == "malloc" {
			n++
		}
	}
	expect.True(t, n != 0, "malloc not found")
}

func relocate(dyn []byte, base uint64) {
	le := binary.LittleEndian
	for i := 0; i+16 <= len(dyn); i += 16 {
		switch le.Uint64(dyn[i:]) {
		case dtHash, dtGNUHash, dtStrtab, dtSymtab:
			le.PutUint64(dyn[i+8:], le.Uint64(dyn[i+8:])+base)
		}
	}
}

// TestNoSectionHeaders: a file stripped of its section headers still has its
// frames, by PT_GNU_EH_FRAME.
func TestNoSectionHeaders(t *testing.T) {
	data := readHost(t)
	a := mustNew(t, data).CFISections()
	stripped := bytes.Clone(data)
	clear(stripped[40:48])
	clear(stripped[58:64])
	f := mustNew(t, stripped)
	b := f.CFISections()
	expect.True(t, b.Err == nil && a.EHFrameAddr == b.EHFrameAddr && bytes.HasPrefix(b.EHFrame, a.EHFrame) &&
		bytes.Equal(a.EHFrameHdr, b.EHFrameHdr),
		"%v: eh_frame at %#x, want %#x", b.Err, b.EHFrameAddr, a.EHFrameAddr)
	n := 0
	for s := range f.Symbols(true) {
		if s.Name == "malloc" && s.Type == 2 && s.Size > 0 {
			n++
		}
	}
	expect.True(t, n != 0, "malloc not found by PT_DYNAMIC")
}

// TestBadEHFramePointer: a header whose pointer cannot be followed is an
// error, not a panic.
func TestBadEHFramePointer(t *testing.T) {
	for name, hdr := range map[string][]byte{
		"outside":   {1, 0x1b, 3, 0x3b, 0, 0, 0, 0x70},
		"encoding":  {1, 0x9b, 3, 0x3b, 0, 0, 0, 0},
		"format":    {1, 0x15, 3, 0x3b, 0, 0, 0, 0},
		"truncated": {1, 0x1b},
		"version":   {7, 0x1b, 3, 0x3b, 0, 0, 0, 0},
	} {
		im := image{segments: []program{{typ: ptLoad},
			{typ: ptGNUEHFrame, off: 0xb0, vaddr: 0xb0, filesz: uint64(len(hdr)), memsz: 8}}}
		im.section(sectionHeader{name: ".x", typ: 1}, hdr)
		data := im.bytes()
		must.Slices(t, data[0xb0:0xb0+len(hdr)], hdr, "the test's layout is wrong")
		var fe *FormatError
		s := mustNew(t, data).CFISections()
		expect.True(t, s.EHFrame == nil && errors.As(s.Err, &fe), "%s: %v %v", name, s.EHFrame, s.Err)
	}
}

// TestVDSO reads this process's own vdso out of memory.
func TestVDSO(t *testing.T) {
	lo, hi := findVDSO(t)
	fd, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip("SKIPPED-CHECK: memory cannot be read")
	}
	defer fd.Close()
	data := make([]byte, hi-lo)
	if _, err := fd.ReadAt(data, int64(lo)); err != nil {
		t.Skip("SKIPPED-CHECK: the vdso cannot be read")
	}
	f, err := FromMemory(data, lo, "[vdso]")
	must.Do(t, err)
	found := 0
	for s := range f.Symbols(true) {
		if _, ok := f.BytesAt(s.Value, 4); ok && strings.HasPrefix(s.Name, "__") {
			found++
		}
	}
	expect.True(t, found != 0 && f.Bias() == lo,
		"%d symbols with code, bias %#x of %#x", found, f.Bias(), lo)
	if s := f.CFISections(); f.Arch() == context.ArchAMD64 && (s.Err != nil || len(s.EHFrame) == 0) {
		t.Errorf("no frames: %v", s.Err)
	}
}

func findVDSO(t *testing.T) (lo, hi uint64) {
	fd, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no /proc")
	}
	defer fd.Close()
	for sc := bufio.NewScanner(fd); sc.Scan(); {
		if strings.HasSuffix(sc.Text(), "[vdso]") {
			must.Get(fmt.Sscanf(sc.Text(), "%x-%x", &lo, &hi))(t)
			return lo, hi
		}
	}
	t.Skip("SKIPPED-CHECK: no vdso")
	return 0, 0
}

// TestDebugFile: separate debug information has headers without bytes. That is
// no damage, and no bytes of it are mistaken for frames.
func TestDebugFile(t *testing.T) {
	im := image{segments: []program{{typ: ptLoad},
		{typ: ptGNUEHFrame, off: 0xb0, vaddr: 0xb0, filesz: 8, memsz: 8}}}
	im.section(sectionHeader{name: ".eh_frame_hdr", typ: shtNobits}, nil)
	im.section(sectionHeader{name: ".eh_frame", typ: shtNobits}, nil)
	im.section(sectionHeader{name: ".debug_frame", typ: 1}, []byte("frames"))
	s := mustNew(t, im.bytes()).CFISections()
	expect.True(t, s.Err == nil && s.EHFrame == nil && s.EHFrameHdr == nil &&
		string(s.DebugFrame) == "frames", "%+v", s)
}

// A mapped image is the same image as one that was read.
func TestMap(t *testing.T) {
	exe := must.Get(os.Executable())(t)
	a := must.Get(Map(exe))(t)
	b := must.Get(Open(exe))(t)
	if a.Entry() != b.Entry() || a.BuildID() != b.BuildID() || len(a.Segments()) != len(b.Segments()) {
		t.Errorf("mapped %#x %q, read %#x %q", a.Entry(), a.BuildID(), b.Entry(), b.BuildID())
	}
	x, ok1 := a.BytesAt(a.Entry(), 16)
	y, ok2 := b.BytesAt(b.Entry(), 16)
	expect.True(t, ok1 && ok2 && string(x) == string(y), "the code at the entry point differs")
}

func TestMapRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o644))
	for _, path := range []string{empty, dir} {
		_, err := Map(path)
		expect.True(t, err != nil, "%s was taken for an image", path)
	}
	_, err := Map(filepath.Join(dir, "none"))
	expect.True(t, errors.Is(err, fs.ErrNotExist), "a missing file: %v", err)
}

// image describes a small ELF file with the types of the reader.
type image struct {
	machine  uint16
	segments []program
	sections []sectionHeader
	bodies   [][]byte
}

func (im *image) section(s sectionHeader, body []byte) {
	im.sections = append(im.sections, s)
	im.bodies = append(im.bodies, body)
}

// bytes writes the image by the test kit's assembler.
func (im *image) bytes() []byte {
	f := elfasm.File{Machine: im.machine, Entry: 0x1234}
	for _, p := range im.segments {
		f.Segments = append(f.Segments,
			elfasm.Segment{Type: p.typ, Flags: p.flags, Off: p.off, Addr: p.vaddr, FileSize: p.filesz,
				MemSize: p.memsz, Align: p.alignTo})
	}
	for i, s := range im.sections {
		f.Sections = append(f.Sections,
			elfasm.Section{Name: s.name, Type: s.typ, Flags: s.flags,
				Addr: s.addr, Link: s.link, Info: s.info,
				Align: s.addrAlign, EntrySize: s.entrySize, Body: im.bodies[i]})
	}
	return f.Bytes()
}

func zlibBytes(t testing.TB, p []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	must.Get(w.Write(p))(t)
	w.Close()
	return out.Bytes()
}

func zstdBytes(t testing.TB, p []byte) []byte {
	w := must.Get(zstd.NewWriter(nil))(t)
	return w.EncodeAll(p, nil)
}

// chdr is an Elf64_Chdr and its data.
func chdr(kind uint32, size uint64, data []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, kind)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, 8)
	return append(b, data...)
}

func mustNew(t testing.TB, data []byte) *File {
	t.Helper()
	return must.Get(New(data, "image"))(t)
}
