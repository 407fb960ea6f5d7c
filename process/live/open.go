package live

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
)

// deleted is the kernel's suffix for the path of a file that was deleted or replaced.
const deleted = " (deleted)"

// open opens the image of a mapping: the file as the process sees it; or the mapped file, even if it no
// longer has a name; or the process's memory.
func (l *Loader) open(m *Mapping) (*elf.File, error) {
	switch {
	case l.Image != nil:
		return l.Image(m)
	case m.Path == "[vdso]":
		return l.copied(m)
	case !strings.HasPrefix(m.Path, "/"):
		return nil, fmt.Errorf("%s: not a file", m.Path)
	}
	if l.pid == 0 {
		return elf.Map(m.Path)
	}
	if !strings.HasSuffix(m.Path, deleted) {
		if f, err := elf.Map(l.proc("root") + m.Path); err == nil {
			return f, nil
		}
		if f, err := elf.Map(m.Path); err == nil && !l.elsewhere() {
			return f, nil
		}
	}
	if f, err := elf.Map(fmt.Sprintf("%s/%x-%x", l.proc("map_files"), m.Start, m.End)); err == nil {
		return f, nil
	}
	f, err := l.copied(m)
	if err != nil {
		return nil, fmt.Errorf("%s: neither the file nor its mapping can be read: %w", m.Path, err)
	}
	return f, nil
}

// OpenImage opens an ELF image that a process runs. It finds the image by its path in the process's mappings,
// and returns nil if it cannot read it. If buildID is not empty, the image must have it.
func OpenImage(pid int, path, buildID string) *elf.File {
	if !strings.HasPrefix(path, "/") || IsPE(path) {
		return nil
	}
	l := NewLoader(pid)
	if buildID != "" { // it distinguishes the image from a replacement
		if f, err := elf.Map(l.proc("root") + strings.TrimSuffix(path, deleted)); err == nil &&
			is(f, buildID) {
			return f
		}
	}
	maps, err := Maps(pid)
	if err != nil {
		return nil
	}
	l.maps = maps
	for i := range maps {
		if m := &maps[i]; strings.TrimSuffix(m.Path, deleted) == strings.TrimSuffix(path, deleted) {
			if f, err := l.open(m); err == nil && is(f, buildID) {
				return f
			}
		}
	}
	return nil
}

func is(f *elf.File, buildID string) bool { return buildID == "" || f.BuildID() == buildID }

func (l *Loader) proc(name string) string {
	if l.pid == 0 {
		return "/proc/self/" + name
	}
	return fmt.Sprintf("/proc/%d/%s", l.pid, name)
}

// elsewhere reports whether the process sees other files than we do.
func (l *Loader) elsewhere() bool {
	theirs, err1 := os.Readlink(l.proc("ns/mnt"))
	ours, err2 := os.Readlink("/proc/self/ns/mnt")
	return err1 == nil && err2 == nil && theirs != ours
}

// copied reads an image out of the process's memory.
func (l *Loader) copied(m *Mapping) (*elf.File, error) {
	maps := l.maps
	if l.Files != nil && m.Inode != 0 {
		files, err := l.Files()
		if err != nil {
			return nil, err
		}
		maps = files
	}
	if l.Memory != nil {
		return ImageFromMemory(l.Memory, maps, m)
	}
	mem, err := os.Open(l.proc("mem"))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	return ImageFromMemory(fileMemory{mem}, maps, m)
}

// Memory is the memory of a process or of a core. Parts of it can be missing.
type Memory interface {
	memory.Reader
	// ReadSome reads as much of p from addr as is readable without a gap.
	ReadSome(p []byte, addr uint64) int
}

// fileMemory reads memory that is a file.
type fileMemory struct{ file *os.File }

func (f fileMemory) ReadAt(p []byte, addr uint64) bool { return f.ReadSome(p, addr) == len(p) }

func (f fileMemory) ReadSome(p []byte, addr uint64) int {
	n, _ := f.file.ReadAt(p, int64(addr))
	return n
}

var errNoHeader = errors.New("the mapping of its ELF header is gone")

// ImageFromMemory reads the image that contains a mapping from memory. Its pages are mapped from the file's
// first one on; gaps and unreadable parts are zero.
func ImageFromMemory(mem Memory, maps []Mapping, m *Mapping) (*elf.File, error) {
	from, to := extent(maps, m)
	if from == nil {
		return nil, errNoHeader
	}
	if to-from.Start > maxImage {
		return nil, fmt.Errorf("an image of %d bytes", to-from.Start)
	}
	data := make([]byte, to-from.Start)
	for i := range maps {
		if p := &maps[i]; p.Start >= from.Start && p.End <= to && p.Path == m.Path {
			mem.ReadSome(data[p.Start-from.Start:p.End-from.Start], p.Start)
		}
	}
	return elf.FromMemory(data, from.Start, m.Path)
}

// extent returns the range of the loaded image that m belongs to. first is the mapping of the first page of
// m's file, at or below m, or nil if none is found. end is the end of the last mapping of the image.
func extent(maps []Mapping, m *Mapping) (first *Mapping, end uint64) {
	for i := range maps {
		p := &maps[i]
		if p.Path != m.Path || p.Inode != m.Inode {
			continue
		}
		if p.Offset == 0 {
			if p.Start > m.Start {
				break
			}
			if first == nil || p.Start != end {
				first = p
			}
		}
		if first != nil {
			end = p.End
		}
	}
	return first, end
}
