package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/process/live"
)

// Modules finds the files of a core's images. It reads the core's memory, and missing pages
// from these files. It is not safe for concurrent use.
type Modules struct {
	Dirs []string // searched before the original path

	core  *Core
	maps  []live.Mapping
	first map[string]int // index of the mapping of a file's first page, by path
	files map[string]*image
}

// image is the result of the search for a file.
type image struct {
	file *os.File // nil if no matching file was found
	path string
	err  error
	elf  *elf.File // nil if the file is not an ELF file

	base      uint64 // where the image is mapped
	relatives []relative
	relocated bool // relatives is complete
}

// relative is a word that the loader relocates by the image's base.
type relative struct{ addr, value uint64 } // the image's own addresses

// NewModules searches dirs for files, by name and by the original path below each dir.
func NewModules(c *Core, dirs []string) *Modules {
	m := newModules(c, c.Maps())
	m.Dirs = dirs
	m.setExecutable()
	return m
}

// newModules finds the first page of each file. If a file is mapped twice, a page that is in the core has
// precedence.
func newModules(c *Core, maps []live.Mapping) *Modules {
	m := &Modules{core: c, maps: maps, first: map[string]int{}, files: map[string]*image{}}
	for i := range maps {
		p := &maps[i]
		if old, known := m.first[p.Path]; p.Offset == 0 &&
			(!known || len(c.from(maps[old].Start)) == 0 && len(c.from(p.Start)) > 0) {
			m.first[p.Path] = i
		}
	}
	return m
}

// Maps are the core's mappings.
func (m *Modules) Maps() []live.Mapping { return m.maps }

// Close closes the files.
func (m *Modules) Close() {
	for _, f := range m.files {
		if f.file != nil {
			f.file.Close()
		}
	}
}

// Problems lists the files that were not found or that have another build id.
func (m *Modules) Problems() (out []string) {
	for _, f := range m.files {
		if f.err != nil {
			out = append(out, f.err.Error())
		}
	}
	sort.Strings(out)
	return out
}

// Image opens the image of a mapping, for a live.Loader.
func (m *Modules) Image(p *live.Mapping) (*elf.File, error) {
	if strings.HasPrefix(p.Path, "/") {
		if f := m.file(p.Path); f.elf != nil {
			return f.elf, nil
		} else if f.file != nil {
			return nil, fmt.Errorf("%s: no ELF file", f.path)
		}
	}
	if len(m.core.from(p.Start)) == 0 {
		if f := m.files[p.Path]; f != nil && f.err != nil {
			return nil, f.err
		}
		return nil, fmt.Errorf("%s: its pages are not in the core", p.Path)
	}
	f, err := live.ImageFromMemory(m.core, m.maps, p)
	if err == nil && m.files[p.Path] != nil {
		m.files[p.Path].err = nil // the core has it
	}
	return f, err
}

// file searches for a mapped file, once per path.
func (m *Modules) file(path string) *image {
	if f := m.files[path]; f != nil {
		return f
	}
	f := &image{err: fmt.Errorf("%s: the file is missing, and the core lacks its code; name its folder with --modules", path)}
	m.files[path] = f
	id := m.buildID(path)
	name := strings.TrimSuffix(path, " (deleted)")
	for _, p := range m.candidates(name) {
		image, why := (*elf.File)(nil), ""
		file, _, err := wholefile.Open(p, math.MaxInt64)
		switch refused := (*wholefile.Error)(nil); {
		case err == nil:
			image, why = examine(file, id)
		case errors.As(err, &refused):
			why = p + " is not a regular file"
		default:
			continue
		}
		if why != "" {
			f.err = fmt.Errorf("%s: %s; name the folder of the right file with --modules", path, why)
			file.Close()
			continue
		}
		f.file, f.path, f.err, f.elf = file, p, nil, image
		return f
	}
	return f
}

func (m *Modules) candidates(path string) (out []string) {
	for _, d := range m.Dirs {
		out = append(out, filepath.Join(d, path), filepath.Join(d, filepath.Base(path)))
	}
	return append(out, path)
}

// examine opens a file as ELF if it is one. If it cannot be the image with this build id, why says so.
func examine(file *os.File, id string) (image *elf.File, why string) {
	magic := make([]byte, 4)
	_, err := file.ReadAt(magic, 0)
	if err == nil && string(magic) == "\x7fELF" {
		image, err = elf.Map(file.Name()) // many paths can name one file
	}
	switch {
	case id == "":
		return image, ""
	case err != nil:
		return nil, err.Error()
	case image == nil:
		return nil, file.Name() + " is not an ELF file"
	case image.BuildID() != id:
		return nil, fmt.Sprintf("%s is of another build (%s, the process had %s)",
			file.Name(), image.BuildID(), id)
	}
	return image, ""
}

// maxHeader bounds the bytes that are searched for a build id.
const maxHeader = 1 << 16

// buildID returns the build id of an image whose first page is in the core, or "".
func (m *Modules) buildID(path string) string {
	i, ok := m.first[path]
	if !ok {
		return ""
	}
	p := &m.maps[i]
	b := make([]byte, min(p.End-p.Start, maxHeader))
	f, err := elf.FromMemory(b[:m.core.ReadSome(b, p.Start)], p.Start, path)
	if err != nil {
		return ""
	}
	return f.BuildID()
}

// ReadAt implements memory.Reader.
func (m *Modules) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

// ReadSome implements live.Memory: the core, then the files.
func (m *Modules) ReadSome(p []byte, addr uint64) (n int) {
	for n < len(p) {
		got := m.core.ReadSome(p[n:], addr+uint64(n))
		if got == 0 {
			got = m.fromFile(p[n:], addr+uint64(n))
		}
		if got <= 0 {
			break
		}
		n += got
	}
	return n
}

// page bounds one read of a file: after it, the core may have memory again.
const page = 4096

func (m *Modules) fromFile(p []byte, addr uint64) int {
	i := sort.Search(len(m.maps), func(i int) bool { return m.maps[i].End > addr })
	if i == len(m.maps) || m.maps[i].Start > addr || !strings.HasPrefix(m.maps[i].Path, "/") {
		return 0
	}
	at := &m.maps[i]
	f := m.file(at.Path)
	if f.file == nil {
		return 0
	}
	room := min(uint64(len(p)), at.End-addr, page-addr%page)
	n, _ := f.file.ReadAt(p[:room], int64(at.Offset+addr-at.Start))
	m.relocate(at.Path, f, p[:max(n, 0)], addr)
	return n
}

// maxRelatives bounds the relocations of one image.
const maxRelatives = 1 << 20

// relocate does what the loader did to bytes that were read from a file. createdump leaves out
// pages of data that nothing has written since.
func (m *Modules) relocate(path string, f *image, b []byte, addr uint64) {
	if !f.relocated {
		f.relocated = true
		f.base, f.relatives = m.relatives(path, f.elf)
	}
	own := addr - f.base
	for i := sort.Search(len(f.relatives),
		func(i int) bool { return f.relatives[i].addr+8 > own }); i < len(f.relatives); i++ {
		r := &f.relatives[i]
		if r.addr >= own+uint64(len(b)) {
			return
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.value+f.base)
		if r.addr < own {
			copy(b, word[own-r.addr:])
		} else {
			copy(b[r.addr-own:], word[:])
		}
	}
}

// relatives returns the bias of a mapped image and its relocations by address.
func (m *Modules) relatives(path string, f *elf.File) (base uint64, out []relative) {
	base, ok := m.bias(path, f)
	if !ok {
		return 0, nil
	}
	for addr, value := range f.Relatives {
		if len(out) >= maxRelatives {
			break
		}
		out = append(out, relative{addr, value})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].addr < out[j].addr })
	return base, out
}

// bias returns the mapped address of a file's first image minus the image's own address.
func (m *Modules) bias(path string, f *elf.File) (bias uint64, ok bool) {
	i, ok := m.first[path]
	if !ok || f == nil {
		return 0, false
	}
	size := m.core.pageSize
	for _, s := range f.Segments() {
		if s.Off < size {
			return m.maps[i].Start - s.Vaddr&^(size-1), true
		}
	}
	return 0, false
}

// setExecutable decides which mappings of images are executable, for cores that do not record permissions.
// It reads the program headers of the files. File offsets are not enough: one page of a file can be both the
// last of the code and the first of the data.
func (m *Modules) setExecutable() {
	for i := range m.maps {
		p := &m.maps[i]
		if !p.Exec || !strings.HasPrefix(p.Path, "/") || live.IsPE(p.Path) {
			continue
		}
		f := m.file(p.Path)
		bias, ok := m.bias(p.Path, f.elf)
		if !ok {
			continue
		}
		for _, s := range f.elf.Segments() {
			if own := p.Start - bias; own >= s.Vaddr&^(m.core.pageSize-1) && own < s.Vaddr+s.Memsz {
				p.Exec = s.Executable()
			}
		}
	}
}
