package live

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Loader builds module tables from mappings and reads each image once. It is not safe for
// concurrent use.
//
// From another process's images, Loader reads what the first frames need, and the rest in a
// background goroutine that then ends. From this process's images it reads everything before
// it returns, because background work must not run while threads of this process are stopped.
type Loader struct {
	// Image, if set, replaces the loader's way to open the image of a mapping, for
	// mappings of a core.
	Image func(m *Mapping) (*elf.File, error)
	// Memory, if set, replaces /proc/PID/mem.
	Memory Memory
	// Files, if set, lists the process's mappings of files. Table then accepts executable
	// mappings only, and calls Files for images that must be read from memory.
	Files func() ([]Mapping, error)

	pid    int
	maps   []Mapping
	images map[imageKey]*module.Module
	parsed map[fileKey]*module.Module // any mapping of the file: its ELF and CFI are shared
	v8     map[*elf.File]bool         // whether an image has V8 in it
	opened []module.Module            // of a table under construction: not all their CFI records are read
	lastID uint32
	gen    uint32
}

type fileKey struct {
	path    string
	inode   uint64
	written int64 // a file that is overwritten keeps its inode
}

// older reports whether the key is of another content of the same file.
func (k *fileKey) older(than *imageKey) bool {
	return k.path == than.path && k.inode == than.inode && k.written != than.written
}

type imageKey struct {
	fileKey
	start, end, offset uint64
}

// NewLoader returns a Loader for process pid, or for this process if pid is 0.
func NewLoader(pid int) *Loader {
	return &Loader{pid: pid, images: map[imageKey]*module.Module{},
		parsed: map[fileKey]*module.Module{}, v8: map[*elf.File]bool{}}
}

// Table builds the module table of maps. Every table has a new generation.
func (l *Loader) Table(maps []Mapping) *module.Table {
	l.gen++
	l.maps = maps
	var modules []module.Module
	var managed, anonymous []memory.Range
	doubleMapped := false
	for i := range maps {
		m := &maps[i]
		switch {
		case !m.Exec || m.Path == "[vsyscall]":
		case isAnonymous(m):
			anonymous = append(anonymous, memory.Range{Start: m.Start, End: m.End})
		case isManaged(m):
			doubleMapped = doubleMapped || strings.HasPrefix(m.Path, doubleMapper)
			managed = append(managed, memory.Range{Start: m.Start, End: m.End})
		default:
			if mod := l.image(m); errors.Is(mod.Err, errOutside) {
				managed = append(managed, memory.Range{Start: m.Start, End: m.End})
			} else {
				modules = append(modules, *mod)
			}
		}
	}
	l.readOpened()
	if len(anonymous) > 0 && doubleMapped && l.markV8(modules) {
		return module.NewTable(l.gen, modules, managed).WithJIT(anonymous)
	}
	return module.NewTable(l.gen, modules, append(managed, anonymous...))
}

// readOpened reads the remaining records of the images that were opened for a table.
func (l *Loader) readOpened() {
	opened := l.opened
	if l.opened = nil; len(opened) == 0 {
		return
	}
	go func() {
		for i := range opened {
			opened[i].CFI.Complete() // damaged records are skipped, as in a complete first read
		}
		runtime.KeepAlive(opened) // the records are bytes of their images
	}()
}

// isManaged tells code the CLR made or mapped itself from native images.
func isManaged(m *Mapping) bool {
	return m.Path == "" || strings.HasPrefix(m.Path, doubleMapper) ||
		IsPE(strings.TrimSuffix(m.Path, deleted))
}

// doubleMapper is how the runtime names the memory of its code if code is never writable where
// it runs (W^X, the default since .NET 7). Anonymous code is then another code generator's.
const doubleMapper = "/memfd:doublemapper"

// isAnonymous reports whether a mapping is memory of no file. The kernel calls shared memory of no file
// "/dev/zero (deleted)".
func isAnonymous(m *Mapping) bool {
	return m.Path == "" || strings.HasPrefix(m.Path, "[anon:") || m.Path == "/dev/zero"+deleted
}

// errOutside means that a mapping is outside the segments of its image. A single-file .NET
// program maps its appended files with precompiled managed code in this way.
var errOutside = errors.New("no executable segment shows this part of the file")

// IsPE reports whether a path names a precompiled managed image.
func IsPE(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".dll") }

func (l *Loader) image(m *Mapping) *module.Module {
	key := imageKey{fileKey{m.Path, m.Inode, m.Written}, m.Start, m.End, m.Offset}
	if old := l.images[key]; old != nil {
		return old
	}
	if m.Written != 0 { // a file that is written all the time has only its last image here
		maps.DeleteFunc(l.images, func(k imageKey, _ *module.Module) bool { return k.older(&key) })
		maps.DeleteFunc(l.parsed, func(k fileKey, _ *module.Module) bool { return k.older(&key) })
	}
	l.lastID++
	mod := l.load(m, key.fileKey)
	mod.ID, mod.Start, mod.End, mod.Path = l.lastID, m.Start, m.End, m.Path
	l.images[key] = &mod
	return &mod
}

// load reads the image of a mapping, or shares what another mapping of the
// same file has read.
func (l *Loader) load(m *Mapping, key fileKey) module.Module {
	if same := l.parsed[key]; same != nil && same.ELF != nil {
		mod := *same
		mod.Bias, mod.Err = bias(mod.ELF, m)
		return mod
	}
	if m.Path == sigpage {
		return module.Module{Bias: m.Start, Image: sigpageImage{}}
	}
	f, err := l.open(m)
	if err != nil {
		return module.Module{Err: err}
	}
	b, err := bias(f, m)
	mod := l.read(f, m, b)
	if err != nil {
		mod.Err = errors.Join(mod.Err, err)
	}
	l.parsed[key] = &mod
	return mod
}

func (l *Loader) read(f *elf.File, m *Mapping, bias uint64) module.Module {
	if l.pid == 0 {
		return module.ELFFromFile(0, f, m.Path, m.Start, m.End, bias)
	}
	mod := module.OpenELF(0, f, m.Path, m.Start, m.End, bias)
	if mod.CFI != nil && !mod.CFI.Read() {
		l.opened = append(l.opened, mod)
	}
	return mod
}

// bias is the mapped address of the image minus the address in its file. It is computed from the first
// executable segment that overlaps the mapping. The segment may begin after the mapping, which begins at a
// page of 4 to 64 KiB.
func bias(f *elf.File, m *Mapping) (uint64, error) {
	for _, s := range f.Segments() {
		if !s.Executable() {
			continue
		}
		if m.Path == "[vdso]" {
			return f.Bias(), nil
		}
		if m.Offset < s.Off+s.Filesz && s.Off < m.Offset+(m.End-m.Start) {
			return m.Start - (s.Vaddr + m.Offset - s.Off), nil
		}
	}
	return 0, fmt.Errorf("%s: file offset %#x: %w", m.Path, m.Offset, errOutside)
}

// v8Symbol is exported by every program that embeds V8 and loads addons.
const v8Symbol = "_ZN2v87Isolate10GetCurrentEv"

// markV8 marks the images with V8 in them, whose generated code and builtins keep frame pointers.
// It reports whether there are any.
func (l *Loader) markV8(modules []module.Module) (found bool) {
	for i := range modules {
		m := &modules[i]
		if m.ELF == nil {
			continue
		}
		v8, known := l.v8[m.ELF]
		if !known {
			v8 = m.ELF.Exports(v8Symbol)
			l.v8[m.ELF] = v8
		}
		m.FramePointers = v8
		found = found || v8
	}
	return found
}
