package live

import (
	"runtime"
	"strings"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr/stubs"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/seed"
	"golang.org/x/sys/windows"
)

// Loaded is an image as the loader tells of it.
type Loaded struct {
	Base  uint64
	Size  uint32 // SizeOfImage
	Stamp uint32 // TimeDateStamp
	Path  string
}

// Images makes module tables of this Windows process and reads each image once.
// It asks the loader and the memory manager, so it works while nothing is
// suspended. It is not safe for concurrent use.
//
// Source: Win32 VirtualQuery; the PE format's directory 14 marks an image with
// managed code.
type Images struct {
	list     func() []Loaded // nil if the loader does not say
	known    map[Loaded]*module.Module
	lastID   uint32
	gen      uint32
	managed  []*module.Module // precompiled managed images of the last table, by address
	entered  map[*module.Module]entry
	specials seed.Specials
	dynamic  dynamic
}

// NewImages returns a reader of this process's images, which list tells.
func NewImages(list func() []Loaded) *Images {
	return &Images{list: list, known: map[Loaded]*module.Module{}, entered: map[*module.Module]entry{}}
}

// Path returns where the image of this name was loaded from, "" if it was not.
// name is in lower case.
func (l *Images) Path(name string) string {
	for key := range l.known {
		if p := strings.ToLower(key.Path); strings.HasSuffix(p, `\`+name) {
			return key.Path
		}
	}
	return ""
}

// Specials returns where a walk cannot begin, as of the last Table.
func (l *Images) Specials() *seed.Specials { return &l.specials }

// Table makes the module table of the process as it is now; nil if the loader
// does not say. Every call gives a new generation.
func (l *Images) Table() *module.Table {
	loaded := l.list()
	if len(loaded) == 0 {
		return nil
	}
	l.gen++
	var modules []module.Module
	var managed []memory.Range
	l.managed = nil
	l.specials = seed.Specials{}
	was, entered := l.known, l.entered
	l.known, l.entered = make(map[Loaded]*module.Module, len(loaded)), make(map[*module.Module]entry, len(loaded))
	for i := range loaded {
		m := l.image(&loaded[i], was, entered)
		if m.PE != nil && m.PE.CLRHeader() {
			managed = append(managed, memory.Range{Start: m.Start, End: m.End})
			l.managed = append(l.managed, m)
			continue
		}
		modules = append(modules, *m)
		e := l.entries(m)
		place(&l.specials.Redirect, m.Start, e.stubs)
		place(&l.specials.Dispatch, m.Start, e.dispatchers)
	}
	l.dynamic.forget()
	return module.NewTable(l.gen, modules, append(managed, madeCode()...))
}

// image reads an image, or takes it from what was read for the last table. What is
// not asked for again is forgotten.
func (l *Images) image(key *Loaded, was map[Loaded]*module.Module, entered map[*module.Module]entry) *module.Module {
	m := was[*key]
	if m == nil {
		l.lastID++
		made := load(l.lastID, key)
		m = &made
	} else if e, ok := entered[m]; ok {
		l.entered[m] = e
	}
	l.known[*key] = m
	return m
}

// load takes the file if it is the image that is mapped, and else the memory:
// a file may have been replaced, and Wine's own libraries need not be the file
// of their name.
func load(id uint32, key *Loaded) module.Module {
	end := key.Base + uint64(key.Size)
	f, err := openMapped(key.Path)
	if err == nil && f.SizeOfImage() == key.Size && f.Stamp() == key.Stamp {
		return module.PEFromFile(id, f, key.Path, key.Base, end)
	}
	if data := readImage(key.Base, uint64(key.Size)); data != nil {
		if f, err = pe.FromMemory(data, key.Path); err == nil {
			return module.PEFromFile(id, f, key.Path, key.Base, end)
		}
	}
	return module.Module{ID: id, Start: key.Base, End: end, Bias: key.Base, Path: key.Path, Err: err}
}

// openMapped reads a PE file without a copy. It stays mapped as long as anything
// refers to it: the system lets nobody cut a mapped file short, nor delete it, which
// a program may do with a library that it has unloaded.
func openMapped(path string) (*pe.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(h)
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return nil, err
	}
	size := uint64(info.FileSizeHigh)<<32 | uint64(info.FileSizeLow)
	if size == 0 || size > pe.MaxFile {
		return nil, &pe.FormatError{Name: path, Structure: "file", Value: size, Reason: pe.TooLarge}
	}
	view, err := windows.CreateFileMapping(h, nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(view)
	at, err := windows.MapViewOfFile(view, windows.FILE_MAP_READ, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	f, err := pe.New(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), int(size)), path)
	if err != nil {
		windows.UnmapViewOfFile(at)
		return nil, err
	}
	runtime.AddCleanup(f, func(at uintptr) { windows.UnmapViewOfFile(at) }, at)
	return f, nil
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// maxImage bounds a copied image.
const maxImage = 1 << 29

// readImage copies an image out of memory, zeros where it has no pages.
func readImage(base, size uint64) []byte {
	if size > maxImage {
		return nil
	}
	data := make([]byte, size)
	for at := base; at < base+size; {
		var r windows.MemoryBasicInformation
		if windows.VirtualQuery(uintptr(at), &r, unsafe.Sizeof(r)) != nil {
			return nil
		}
		end := min(uint64(r.BaseAddress)+uint64(r.RegionSize), base+size)
		if end <= at {
			return nil
		}
		if readable(&r) {
			readSelf(at, data[at-base:end-base]) // what went away meanwhile stays zero
		}
		at = end
	}
	return data
}

const (
	protectRead = windows.PAGE_READONLY | windows.PAGE_READWRITE | windows.PAGE_WRITECOPY | windows.PAGE_EXECUTE_READ | windows.PAGE_EXECUTE_READWRITE | windows.PAGE_EXECUTE_WRITECOPY
	protectExec = windows.PAGE_EXECUTE | windows.PAGE_EXECUTE_READ | windows.PAGE_EXECUTE_READWRITE | windows.PAGE_EXECUTE_WRITECOPY
	memImage    = 0x1000000
)

func readable(r *windows.MemoryBasicInformation) bool {
	return r.State == windows.MEM_COMMIT && r.Protect&protectRead != 0 && r.Protect&windows.PAGE_GUARD == 0
}

// readSelf reads our own memory through the system, which answers where a load
// would fault.
func readSelf(addr uint64, b []byte) bool {
	var n uintptr
	if len(b) == 0 {
		return true
	}
	err := windows.ReadProcessMemory(windows.CurrentProcess(), uintptr(addr), &b[0], uintptr(len(b)), &n)
	return err == nil && n == uintptr(len(b))
}

// maxRegions bounds the walk of the address space.
const maxRegions = 1 << 20

// madeCode is executable memory that belongs to no image: what the CLR, or
// another generator, made.
func madeCode() []memory.Range {
	var out []memory.Range
	at := uintptr(0x10000)
	for range maxRegions {
		var r windows.MemoryBasicInformation
		if windows.VirtualQuery(at, &r, unsafe.Sizeof(r)) != nil || r.RegionSize == 0 {
			break
		}
		start, end := uint64(r.BaseAddress), uint64(r.BaseAddress)+uint64(r.RegionSize)
		if r.State == windows.MEM_COMMIT && r.Protect&protectExec != 0 && r.Type != memImage {
			if n := len(out); n > 0 && out[n-1].End == start {
				out[n-1].End = end
			} else {
				out = append(out, memory.Range{Start: start, End: end})
			}
		}
		if uintptr(end) <= at {
			break
		}
		at = uintptr(end)
	}
	return out
}

// entry is where an image is entered without a call.
type entry struct{ stubs, dispatchers []memory.Range }

// entries looks for them once an image.
func (l *Images) entries(m *module.Module) entry {
	e, ok := l.entered[m]
	if !ok && m.PE != nil {
		e.stubs = stubs.Entered(m.PE)
		if strings.HasSuffix(strings.ToLower(m.Path), `\ntdll.dll`) {
			e.dispatchers = stubs.Dispatchers(m.PE)
		}
		l.entered[m] = e
	}
	return e
}

// place puts an image's ranges into the next free places, as far as there are.
func place(to *seed.Places, base uint64, ranges []memory.Range) {
	for _, r := range ranges {
		to.Add(memory.Range{Start: base + r.Start, End: base + r.End})
	}
}
