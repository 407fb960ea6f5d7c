package symbol

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seedwalk/seedwalk/elf"
)

// Resolver names addresses of images by path. It reads each image once. It is safe for concurrent use. It
// must not be used while a thread is suspended.
type Resolver struct {
	DebugDirs []string // folders of separate debug files; nil = DefaultDebugDirs
	Folders   Folders  // searched before DebugDirs
	Cache     *Cache   // of tables that several resolvers share; nil = none

	// Fetch fetches a file with the symbols of a build; nil = nothing is fetched. fits checks the build of a
	// file from a place. Fetch is called for images without symbols, one at a time.
	Fetch func(path, id string, fits func(file, place string) bool) string

	fetching sync.Mutex

	mu     sync.Mutex
	images map[string]*image
	names  map[string]string // mangled -> readable
	kept   map[string]*elf.File

	refused []Refusal
	perf    map[string]*perfFile // perf maps by JITPath
}

// image is one image's table, made by the first who asks. role and line are nil if they know nothing.
type image struct {
	once  sync.Once
	table *Table
	cover Cover
	size  atomic.Int64             // symbols, and 1 for the image; 0 = not read
	role  func(addr uint64) string // of code without a name, "" = unknown
	line  func(addr uint64) (file string, line int)

	chained bool // a function may have parts elsewhere: cover gives the start of the first
}

// NewResolver returns a Resolver with the default folders.
func NewResolver() *Resolver {
	return &Resolver{images: map[string]*image{}, names: map[string]string{}, kept: map[string]*elf.File{}}
}

// Keep stores an image that a process runs, in case its path stops leading to that file. The first one for a
// path and build ID is kept. Without a build ID, a file that replaced the first one cannot be distinguished
// from it. Then neither gives names.
func (r *Resolver) Keep(path, buildID string, f *elf.File) {
	key := path + "\x00" + buildID
	r.mu.Lock()
	defer r.mu.Unlock()
	old, again := r.kept[key]
	switch {
	case !again:
		r.kept[key] = f
	case buildID == "" && old != nil && !sameCode(old, f):
		r.kept[key] = nil
		delete(r.images, key)
	}
}

// sameCode reports whether two images have the same executable segments.
func sameCode(a, b *elf.File) bool {
	return slices.EqualFunc(a.Segments(), b.Segments(), func(s, t elf.Segment) bool {
		x, _ := a.BytesAt(s.Vaddr, int(s.Filesz))
		y, _ := b.BytesAt(t.Vaddr, int(t.Filesz))
		return s == t && (!s.Executable() || bytes.Equal(x, y))
	})
}

// Name returns the readable name of the symbol that covers addr, an address of the image itself, or for
// JITPath of the process. A role in brackets is the name of some code of .NET runtimes without a symbol. If
// buildID is not empty, the file must have it; a replaced file gives no names.
func (r *Resolver) Name(path, buildID string, addr uint64) (string, bool) {
	if strings.HasPrefix(path, jitPrefix) {
		return r.jitName(path, addr)
	}
	im := r.image(path, buildID)
	name, _, ok := im.table.Find(addr)
	if start, _, covered := im.cover(addr); !ok && im.chained && covered {
		name, _, ok = im.table.Find(start)
	}
	if !ok {
		if im.role != nil {
			name = im.role(addr)
		}
		return name, name != ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	readable, known := r.names[name]
	if !known {
		readable = Demangle(name)
		r.names[name] = readable
	}
	return readable, true
}

// Line returns the place in the source of the code at addr. file is "" if it is unknown.
func (r *Resolver) Line(path, buildID string, addr uint64) (file string, line int) {
	if strings.HasPrefix(path, jitPrefix) {
		return "", 0
	}
	if im := r.image(path, buildID); im.line != nil {
		return im.line(addr)
	}
	return "", 0
}

// Function returns the range of the function that contains addr, from the image's unwind table. This
// distinguishes functions in a stripped library, without names.
func (r *Resolver) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	return r.image(path, buildID).cover(addr)
}

// DebugFile returns the file name of the separate debug file that an image refers to: by
// .gnu_debuglink in ELF, or the PDB in PE. It returns "" if the image refers to none or
// cannot be read. It does not check whether the debug file exists.
func (r *Resolver) DebugFile(path, buildID string) string {
	f := r.open(path, buildID)
	if f == nil {
		if image := r.openPE(path, buildID); image != nil {
			return pdbName(image, path)
		}
		return ""
	}
	name, _, _ := debugLink(f)
	return name
}

// Table returns the table of an image; it is empty if nothing can be read.
func (r *Resolver) Table(path, buildID string) *Table { return r.image(path, buildID).table }

func (r *Resolver) image(path, buildID string) *image {
	key := path + "\x00" + buildID
	r.mu.Lock()
	im := r.images[key]
	if im == nil {
		im = r.Cache.image(key, buildID)
		r.images[key] = im
	}
	r.mu.Unlock()
	im.once.Do(func() { r.load(im, path, buildID) })
	return im
}

func (r *Resolver) load(im *image, path, buildID string) {
	dirs := r.DebugDirs
	if dirs == nil {
		dirs = DefaultDebugDirs
	}
	im.table, im.cover = &Table{}, func(uint64) (uint64, uint64, bool) { return 0, 0, false }
	f := r.open(path, buildID)
	if f == nil && !isBuildID(buildID) && r.loadPE(im, path, buildID) {
		return
	}
	symbols := r.fromFolders(f, path, buildID)
	if symbols == nil && r.Fetch != nil {
		symbols = r.fetched(f, path, buildID, dirs)
	}
	if f == nil {
		f = symbols // without an unwind table
	}
	if f == nil {
		f = byBuildID(buildID, dirs) // the same
	}
	if f == nil {
		r.Cache.forget(path + "\x00" + buildID)
		return
	}
	records := records(f)
	im.cover = ranges(records)
	im.table = table(f, path, dirs, im.cover, symbols)
	im.role = runtimeRole(f, records)
	if r.Cache != nil {
		records() // the cache must not keep f: its file may be mapped
	}
	im.size.Store(1 + int64(im.table.Len()))
}

// open returns the stored image, or reads the one at path.
func (r *Resolver) open(path, buildID string) *elf.File {
	r.mu.Lock()
	f, kept := r.kept[path+"\x00"+buildID]
	r.mu.Unlock()
	if kept {
		return f
	}
	return open(path, buildID)
}

// open reads the image at path, nil if it is missing or has another build ID.
func open(path, buildID string) *elf.File {
	if path == "[vdso]" {
		return vdso()
	}
	f, err := elf.Open(strings.TrimSuffix(path, " (deleted)"))
	if err != nil || buildID != "" && f.BuildID() != buildID {
		return nil
	}
	return f
}

// vdso reads our own vdso: the kernel gives the same one to every process of a kind.
func vdso() *elf.File {
	start, end, ok := ownMapping("[vdso]")
	if !ok {
		return nil
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil
	}
	defer mem.Close()
	data := make([]byte, end-start)
	if _, err := mem.ReadAt(data, int64(start)); err != nil {
		return nil
	}
	f, err := elf.New(data, "[vdso]") // it is mapped in one piece, like the file
	if err != nil {
		return nil
	}
	return f
}

// ownMapping finds a mapping of this process by name, at most 1 MiB.
func ownMapping(name string) (start, end uint64, ok bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if !strings.HasSuffix(sc.Text(), " "+name) {
			continue
		}
		n, _ := fmt.Sscanf(sc.Text(), "%x-%x", &start, &end)
		return start, end, n == 2 && start < end && end-start <= 1<<20
	}
	return 0, 0, false
}
