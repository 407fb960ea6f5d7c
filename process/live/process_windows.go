package live

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context/memory"
)

// Process is another Windows process: its memory and its images. It is not safe for concurrent use.
//
// Source: winternl.h, and for the loader's list the public symbols of ntdll (PEB, PEB_LDR_DATA,
// LDR_DATA_TABLE_ENTRY), which are the same in every 64-bit Windows.
type Process struct {
	Windows // opens files
	handle  windows.Handle
	peb     uint64
	loader  uint64 // PEB_LDR_DATA, 0 = it does not exist yet
}

// Offsets in the loader's structures, and bounds.
const (
	pebLoader   = 0x18 // PEB.Ldr
	loaderList  = 0x10 // PEB_LDR_DATA.InLoadOrderModuleList
	entryBase   = 0x30
	entrySize   = 0x40
	entryName   = 0x48 // FullDllName: length, then the address of the text
	entryStamp  = 0x80
	entryBytes  = 0x88
	maxLoaded   = 1 << 14
	maxPathWide = 1 << 15
)

// OpenProcess opens a process for reading. The right to suspend its threads includes this right.
func OpenProcess(pid int) (*Process, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION|windows.PROCESS_VM_READ|
		windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return nil, err
	}
	var info windows.PROCESS_BASIC_INFORMATION
	err = windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&info),
		uint32(unsafe.Sizeof(info)), nil)
	if err != nil || info.PebBaseAddress == nil {
		windows.CloseHandle(h)
		return nil, fmt.Errorf("cannot read the PEB address of process %d: %w", pid, err)
	}
	return &Process{handle: h, peb: uint64(uintptr(unsafe.Pointer(info.PebBaseAddress)))}, nil
}

// Close closes what OpenProcess opened.
func (p *Process) Close() error { return windows.CloseHandle(p.handle) }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	w, err := windows.WaitForSingleObject(p.handle, 0)
	return err != nil || w == windows.WAIT_OBJECT_0
}

// ReadAt implements memory.Reader.
func (p *Process) ReadAt(b []byte, addr uint64) bool { return p.read(b, addr) == len(b) }

func (p *Process) read(b []byte, addr uint64) int {
	var n uintptr
	if len(b) == 0 || int64(addr) <= 0 {
		return 0
	}
	if windows.ReadProcessMemory(p.handle, uintptr(addr), &b[0], uintptr(len(b)), &n) != nil {
		n = min(n, uintptr(len(b)))
	}
	return int(n)
}

// ReadSome reads as much of b from addr as is readable without a gap.
func (p *Process) ReadSome(b []byte, addr uint64) int {
	const page = 4096
	done := p.read(b, addr)
	for done < len(b) {
		step := min(page-int((addr+uint64(done))%page), len(b)-done)
		n := p.read(b[done:done+step], addr+uint64(done))
		done += n
		if n < step {
			break
		}
	}
	return done
}

// region returns the region that contains an address. Source: Win32 VirtualQueryEx.
func (p *Process) region(at uint64) (Region, bool) {
	var r windows.MemoryBasicInformation
	if windows.VirtualQueryEx(p.handle, uintptr(at), &r, unsafe.Sizeof(r)) != nil || r.RegionSize == 0 {
		return Region{}, false
	}
	return regionOf(&r), true
}

// LoaderMark changes when an image is loaded or unloaded: it is the last image of the loader's list, with the
// address of its entry. It misses a change only if the last images are unloaded and the same are loaded again
// at the same addresses.
type LoaderMark struct {
	last uint64
	Loaded
}

// Mark returns the current mark; false if it cannot be read.
func (p *Process) Mark() (m LoaderMark, ok bool) {
	if !p.list() {
		return m, false
	}
	last, ok := memory.Word(p, p.loader+loaderList+8)
	if !ok {
		return m, false
	}
	var b [entryBytes]byte
	if m.last = last; !p.ReadAt(b[:], last) {
		return m, false
	}
	m.Loaded = loadedOf(b[:])
	return m, true
}

// Loaded reads the loader's list. It returns false if the list is unreadable or longer than maxLoaded, as it
// can be while the process changes it.
func (p *Process) Loaded() (out []Loaded, ok bool) {
	if !p.list() {
		return nil, false
	}
	head := p.loader + loaderList
	at, ok := memory.Word(p, head)
	for n := 0; ok && at != head && n < maxLoaded; n++ {
		var b [entryBytes]byte
		if !p.ReadAt(b[:], at) {
			return out, false
		}
		m := loadedOf(b[:])
		if m.Base != 0 && m.Size != 0 {
			m.Path = p.wide(binary.LittleEndian.Uint64(b[entryName+8:]),
				int(binary.LittleEndian.Uint16(b[entryName:])))
			out = append(out, m)
		}
		at = binary.LittleEndian.Uint64(b[:])
	}
	return out, ok && at == head
}

// list finds the loader's list, whose address does not change.
func (p *Process) list() bool {
	if p.loader == 0 {
		p.loader, _ = memory.Word(p, p.peb+pebLoader)
	}
	return p.loader != 0
}

func loadedOf(b []byte) Loaded {
	return Loaded{Base: binary.LittleEndian.Uint64(b[entryBase:]),
		Size:  binary.LittleEndian.Uint32(b[entrySize:]),
		Stamp: binary.LittleEndian.Uint32(b[entryStamp:])}
}

// wide reads size bytes of UTF-16.
func (p *Process) wide(addr uint64, size int) string {
	if size <= 0 || size > maxPathWide {
		return ""
	}
	b := make([]byte, size&^1)
	if !p.ReadAt(b, addr) {
		return ""
	}
	text := make([]uint16, size/2)
	for i := range text {
		text[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(text))
}

// maxMarked bounds how often Images reads a list that changes.
const maxMarked = 5

// Images returns a reader of the process's images. It has no images if the loader's list changes during all
// maxMarked attempts. It finds regions of generated code only through Cover.
func (p *Process) Images() *Images {
	im := newImages(p, func() []Loaded {
		for range maxMarked {
			before, ok1 := p.Mark()
			list, ok := p.Loaded()
			if after, ok2 := p.Mark(); ok && ok1 && ok2 && before == after {
				return list
			}
		}
		return nil
	})
	im.covered = true
	return im
}
