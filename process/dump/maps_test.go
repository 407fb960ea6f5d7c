package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
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

// The program headers decide which parts of an image are executable. Other mappings keep their guess. A
// mapping begins at a multiple of the process's page size, AT_PAGESZ (mmap(2)). So it may begin before its
// segment, in the page of the segment before.
func TestSetExecutable(t *testing.T) {
	path := must.Get(os.Executable())(t)
	f := must.Get(elf.Open(path))(t)
	for _, page := range []uint64{4 << 10, 16 << 10, 64 << 10} {
		const base = 0x100000000
		first := f.Segments()[0].Vaddr &^ (page - 1)
		c := &Core{}
		c.auxv(le.AppendUint64(le.AppendUint64(nil, 6), page))
		var maps []live.Mapping
		for _, s := range f.Segments() {
			own := s.Vaddr&^(page-1) - first
			maps = append(maps,
				live.Mapping{Path: path, Start: base + own, Offset: s.Off &^ (page - 1), Exec: true})
		}
		maps = append(maps, live.Mapping{Path: path, Start: 1 << 40, Offset: page, Exec: true})
		m := newModules(c, maps)
		m.files[path] = &image{elf: f}
		m.setExecutable()
		code := 0
		for i, s := range f.Segments() {
			if expect.Equal(t, m.maps[i].Exec, s.Executable(), "pages of %d, segment at %#x", page,
				s.Vaddr); s.Executable() {
				code++
			}
		}
		if last := &m.maps[len(m.maps)-1]; code == 0 || code == len(f.Segments()) || !last.Exec {
			t.Errorf("%d segments of code, another mapping %v", code, last.Exec)
		}
	}
}

// The list of mapped files of a hostile core can have hundreds of thousands of paths. None is looked for in
// all mappings: that would take minutes.
func TestManyFiles(t *testing.T) {
	c := elfasm.Core{Machine: 62, Parts: []elfasm.CorePart{{Addr: 0x5000, Size: 0x1000, Flags: 6}}}
	c.Thread(100, 11, make([]uint64, 27)...)
	var files []elfasm.CoreFile
	for i := range uint64(maxFiles) {
		files = append(files, elfasm.CoreFile{Start: (i + 16) << 12, End: (i + 17) << 12,
			Path: fmt.Sprintf("/no such folder/%06x", i)})
	}
	c.Files(files...)
	core := must.Get(New(c.Bytes()))(t)
	done := make(chan int)
	go func() { done <- len(NewModules(core, nil).Problems()) }()
	select {
	case n := <-done:
		expect.Equal(t, n, maxFiles, "missing files")
	case <-time.After(time.Minute):
		t.Error("a minute was not enough")
	}
}

// Many paths of a hostile core can name one large file. It is in memory once.
func TestManyPathsOfOneFile(t *testing.T) {
	const paths, size = 64, 16 << 20
	path := filepath.Join(tempdir.New(t), "image")
	must.Do(t, os.WriteFile(path, must.Get(os.ReadFile(must.Get(os.Executable())(t)))(t), 0o600))
	must.Do(t, os.Truncate(path, size))
	c := elfasm.Core{Machine: 62, Parts: []elfasm.CorePart{{Addr: 0x5000, Size: 0x1000, Flags: 6}}}
	c.Thread(100, 11, make([]uint64, 27)...)
	var files []elfasm.CoreFile
	for i := range uint64(paths) {
		files = append(files, elfasm.CoreFile{Start: (i + 16) << 12, End: (i + 17) << 12,
			Path: strings.Repeat("/.", int(i)) + path})
	}
	c.Files(files...)
	core := must.Get(New(c.Bytes()))(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := NewModules(core, nil)
	runtime.ReadMemStats(&after)
	defer m.Close()
	expect.Equal(t, len(m.files), paths, "files")
	got := after.TotalAlloc - before.TotalAlloc
	expect.True(t, got < paths*size/8, "%d MB for %d paths of a file of %d MB", got>>20, paths, size>>20)
}

// A file that is mapped twice, as a single-file program maps itself, has its build ID where the core has it.
func TestMappedTwice(t *testing.T) {
	header := must.Get(os.ReadFile(must.Get(os.Executable())(t)))(t)[:4096]
	parts := []elfasm.CorePart{{Addr: 0x5000, Size: 0x1000, Flags: 4}, {Addr: 0x9000, Size: 0x1000, Flags: 4,
		Data: header}}
	c := elfasm.Core{Machine: 62, Parts: parts}
	c.Thread(100, 11, make([]uint64, 27)...)
	c.Files(elfasm.CoreFile{Start: 0x5000, End: 0x6000, Path: "/a"},
		elfasm.CoreFile{Start: 0x9000, End: 0xa000, Path: "/a"})
	core := must.Get(New(c.Bytes()))(t)
	m := newModules(core, core.Maps())
	expect.Equal(t, m.maps[m.first["/a"]].Start, 0x9000, "the first page")
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
