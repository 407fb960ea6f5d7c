package live

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/seed"
)

// Images makes module tables of this Windows process and reads each image once.
// It asks the loader and the memory manager, so it works while nothing is
// suspended. It is not safe for concurrent use.
//
// Source: Win32 EnumProcessModules, VirtualQuery; the PE format's directory 14
// marks an image with managed code.
type Images struct {
	known    map[imageKeyPE]*module.Module
	lastID   uint32
	gen      uint32
	managed  []*module.Module // precompiled managed images of the last table, by address
	specials seed.Specials
	dynamic  dynamic
}

// imageKeyPE tells an image from another at the same address.
type imageKeyPE struct {
	base  uint64
	size  uint32
	stamp uint32
}

// NewImages returns a reader of this process's images.
func NewImages() *Images {
	return &Images{known: map[imageKeyPE]*module.Module{}}
}

// Specials returns where a walk cannot begin, as of the last Table.
func (l *Images) Specials() *seed.Specials { return &l.specials }

// Table makes the module table of the process as it is now; nil if the loader
// does not say. Every call gives a new generation.
func (l *Images) Table() *module.Table {
	handles, err := moduleHandles()
	if err != nil {
		return nil
	}
	l.gen++
	var modules []module.Module
	var managed []module.Range
	l.managed = l.managed[:0]
	l.specials = seed.Specials{}
	for _, h := range handles {
		m := l.image(h)
		if m == nil {
			continue
		}
		if isManagedImage(m.PE) {
			managed = append(managed, module.Range{Start: m.Start, End: m.End})
			l.managed = append(l.managed, m)
			continue
		}
		modules = append(modules, *m)
		l.special(m)
	}
	l.dynamic.forget()
	return module.NewTable(l.gen, modules, append(managed, madeCode()...))
}

// maxModules bounds what the loader is asked for.
const maxModules = 1 << 14

func moduleHandles() ([]windows.Handle, error) {
	self := windows.CurrentProcess()
	buf := make([]windows.Handle, 512)
	for {
		var need uint32
		size := uint32(len(buf)) * uint32(unsafe.Sizeof(buf[0]))
		if err := windows.EnumProcessModules(self, &buf[0], size, &need); err != nil {
			return nil, err
		}
		n := int(need / uint32(unsafe.Sizeof(buf[0])))
		if n <= len(buf) {
			return buf[:n], nil
		}
		if n > maxModules {
			return nil, fmt.Errorf("%d modules", n)
		}
		buf = make([]windows.Handle, n+64)
	}
}

// image reads an image, or takes it from what was read. Nil: it is gone.
func (l *Images) image(h windows.Handle) *module.Module {
	var info windows.ModuleInfo
	if windows.GetModuleInformation(windows.CurrentProcess(), h, &info, uint32(unsafe.Sizeof(info))) != nil {
		return nil
	}
	key := imageKeyPE{base: uint64(info.BaseOfDll), size: info.SizeOfImage, stamp: stampAt(info.BaseOfDll)}
	if m := l.known[key]; m != nil {
		return m
	}
	l.lastID++
	m := load(l.lastID, modulePath(h), key)
	l.known[key] = &m
	return &m
}

func modulePath(h windows.Handle) string {
	var buf [windows.MAX_LONG_PATH]uint16
	if n, err := windows.GetModuleFileName(h, &buf[0], uint32(len(buf))); err != nil || n == 0 {
		return fmt.Sprintf("image at %#x", uint64(h))
	}
	return windows.UTF16ToString(buf[:])
}

// load takes the file if it is the image that is mapped, and else the memory:
// a file may have been replaced, and Wine's own libraries need not be the file
// of their name.
func load(id uint32, path string, key imageKeyPE) module.Module {
	end := key.base + uint64(key.size)
	f, err := pe.Open(path)
	if err == nil && f.SizeOfImage() == key.size && fileStamp(f) == key.stamp {
		return module.PEFromFile(id, f, path, key.base, end)
	}
	if data := readImage(key.base, uint64(key.size)); data != nil {
		if f, err = pe.FromMemory(data, path); err == nil {
			return module.PEFromFile(id, f, path, key.base, end)
		}
	}
	return module.Module{ID: id, Start: key.base, End: end, Bias: key.base, Path: path, Err: err}
}

// Places in a PE header.
const (
	lfanewAt  = 0x3c
	stampAt8  = 8 // from the signature
	headBytes = 0x400
)

// stampAt is the TimeDateStamp of a mapped image, 0 if it cannot be read.
func stampAt(base uintptr) uint32 {
	var head [headBytes]byte
	if !readSelf(uint64(base), head[:]) {
		return 0
	}
	return stampOf(head[:])
}

func stampOf(head []byte) uint32 {
	if len(head) < lfanewAt+4 {
		return 0
	}
	at := le32(head[lfanewAt:])
	if uint64(at)+stampAt8+4 > uint64(len(head)) {
		return 0
	}
	return le32(head[at+stampAt8:])
}

func fileStamp(f *pe.File) uint32 { return stampOf(f.Tail(0, headBytes)) }

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
func madeCode() []module.Range {
	var out []module.Range
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
				out = append(out, module.Range{Start: start, End: end})
			}
		}
		if uintptr(end) <= at {
			break
		}
		at = uintptr(end)
	}
	return out
}

// isManagedImage reports whether an image holds precompiled managed code: it
// has a CLR header (directory 14 of the optional header).
func isManagedImage(f *pe.File) bool {
	if f == nil {
		return false
	}
	head := f.Tail(0, headBytes)
	if len(head) < lfanewAt+4 {
		return false
	}
	const directories, entry, clrHeader = 24 + 112, 8, 14 // PE32+; PE32 has them 16 earlier
	at := uint64(le32(head[lfanewAt:]))
	if at+24+2 > uint64(len(head)) {
		return false
	}
	dirs := at + directories
	if head[at+24] == 0x0b && head[at+25] == 1 { // PE32
		dirs -= 16
	}
	at = dirs + clrHeader*entry
	return at+entry <= uint64(len(head)) && le32(head[at:]) != 0
}

// dispatchers are where the kernel enters user mode.
var dispatchers = map[string]bool{"KiUserExceptionDispatcher": true, "KiUserApcDispatcher": true, "KiUserCallbackDispatcher": true}

// dispatcherSize bounds a dispatcher whose function's end is not known.
const dispatcherSize = 64

// special looks for the addresses that a walk must know in ntdll.
func (l *Images) special(m *module.Module) {
	if m.PE == nil || !strings.HasSuffix(strings.ToLower(m.Path), `\ntdll.dll`) {
		return
	}
	exports, err := m.PE.Exports()
	if err != nil && len(exports) == 0 {
		return
	}
	n := 0
	for i := range exports {
		if e := &exports[i]; dispatchers[e.Name] && n < seed.MaxSpecials {
			end := e.RVA + dispatcherSize
			if fn, ok := m.PE.LookupAMD64(e.RVA); ok {
				end = fn.End
			}
			l.specials.Dispatch[n] = seed.Range{Start: m.Start + uint64(e.RVA), End: m.Start + uint64(end)}
			n++
		}
	}
}
