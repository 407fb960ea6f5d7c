package dump

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// createdump leaves holes inside the mapping of a file. Each hole is a mapping of its own, so
// that it can be read from the file, at the right offset.
func TestMapsHoles(t *testing.T) {
	file := func(start, end uint64) File {
		return File{Start: start, End: end, Offset: 0x100000 + start, Path: "/a"}
	}
	seg := func(start, end uint64) segment { return segment{start: start, end: end} }
	for _, c := range []struct {
		name     string
		files    []File
		segments []segment
		want     string
	}{
		{"nothing kept", []File{file(0x1000, 0x5000)}, nil, "1000-5000@101000x"},
		{"all kept", []File{file(0x1000, 0x5000)}, []segment{seg(0x1000, 0x5000)}, "1000-5000@101000"},
		{"a hole before", []File{file(0x1000, 0x5000)}, []segment{seg(0x3000, 0x5000)},
			"1000-3000@101000x 3000-5000@103000"},
		{"a hole behind", []File{file(0x1000, 0x5000)}, []segment{seg(0x1000, 0x2000)},
			"1000-2000@101000 2000-5000@102000x"},
		{"holes everywhere", []File{file(0x1000, 0x8000)},
			[]segment{seg(0x2000, 0x3000), seg(0x4000, 0x5000)},
			"1000-2000@101000x 2000-3000@102000 3000-4000@103000x 4000-5000@104000 5000-8000@105000x"},
		{"memory between files", []File{file(0x1000, 0x2000), file(0x5000, 0x6000)},
			[]segment{seg(0x3000, 0x4000)},
			"1000-2000@101000x 3000-4000 5000-6000@105000x"},
		{"a segment over two files", []File{file(0x1000, 0x2000), file(0x2000, 0x4000)},
			[]segment{seg(0x1000, 0x3000)},
			"1000-2000@101000 2000-3000@102000x 3000-4000@103000x"},
		{"memory that a file ends in", []File{file(0x1000, 0x3000)},
			[]segment{seg(0x2000, 0x6000), seg(0x7000, 0x8000)},
			"1000-2000@101000x 2000-3000@102000 3000-6000 7000-8000"},
	} {
		var got []string
		for _, m := range (&Core{Files: c.files, segments: c.segments}).Maps() {
			s := fmt.Sprintf("%x-%x", m.Start, m.End)
			if m.Path != "" {
				s += fmt.Sprintf("@%x", m.Offset)
			}
			if m.Exec {
				s += "x"
			}
			got = append(got, s)
		}
		expect.Equal(t, strings.Join(got, " "), c.want, c.name)
	}
}

// Bytes read from a file are relocated as the loader does, also in a truncated word.
func TestRelocate(t *testing.T) {
	m := &Modules{}
	f := &image{relocated: true, base: 0x10000,
		relatives: []relative{{0x100, 0x1122}, {0x108, 0x3344}, {0x200, 1}}}
	for _, c := range []struct {
		addr uint64
		size int
		want string
	}{
		{0x10100, 16, "22 11 01 00 00 00 00 00 44 33 01 00 00 00 00 00"},
		{0x10101, 4, "11 01 00 00"},
		{0x100fe, 4, "ee ee 22 11"},
		{0x10106, 4, "00 00 44 33"},
		{0x10110, 2, "ee ee"},
		{0x10207, 2, "00 ee"},
	} {
		b := []byte(strings.Repeat("\xee", c.size))
		m.relocate("/a", f, b, c.addr)
		expect.Equal(t, fmt.Sprintf("% x", b), c.want, "%#x", c.addr)
	}
}

// The program headers decide which parts of an image are executable. Other mappings keep their guess.
func TestSetExecutable(t *testing.T) {
	path := must.Get(os.Executable())(t)
	f := must.Get(elf.Open(path))(t)
	const base, page = 0x100000000, 4096
	first := f.Segments()[0].Vaddr &^ (page - 1)
	m := &Modules{files: map[string]*image{path: {elf: f}}}
	for _, s := range f.Segments() {
		own := s.Vaddr&^(page-1) - first
		m.maps = append(m.maps,
			live.Mapping{Path: path, Start: base + own, Offset: s.Off &^ (page - 1), Exec: true})
	}
	m.maps = append(m.maps, live.Mapping{Path: path, Start: 1 << 40, Offset: page, Exec: true})
	m.setExecutable()
	code := 0
	for i, s := range f.Segments() {
		if expect.Equal(t, m.maps[i].Exec, s.Executable(), "segment at %#x", s.Vaddr); s.Executable() {
			code++
		}
	}
	if last := &m.maps[len(m.maps)-1]; code == 0 || code == len(f.Segments()) || !last.Exec {
		t.Errorf("%d segments of code, another mapping %v", code, last.Exec)
	}
}

// The mapping of the main thread's stack has the name that the kernel gives it in a running process.
func TestMapsMainStack(t *testing.T) {
	auxv := make([]byte, 32)
	auxv[0], auxv[9] = 25, 0x35 // AT_RANDOM
	c := &Core{segments: []segment{{start: 0x1000, end: 0x2000}, {start: 0x3000, end: 0x4000}}}
	c.auxv(auxv)
	maps := c.Maps()
	expect.True(t, len(maps) == 2 && maps[0].Path == "" && maps[1].Path == "[stack]", "%+v", maps)
}
