package live

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/pe"
)

// Windows implements system with Windows calls for this process.
type Windows struct{}

// NewImages returns an Images for this process. list returns the loaded images.
func NewImages(list func() []Loaded) *Images { return newImages(Windows{}, list) }

// open maps a PE file. The file stays mapped while anything refers to it. The system then
// refuses to truncate or delete it, as a program may do with an unloaded library.
func (Windows) open(path string) (*pe.File, error) {
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

const (
	protectRead = windows.PAGE_READONLY | windows.PAGE_READWRITE | windows.PAGE_WRITECOPY |
		windows.PAGE_EXECUTE_READ | windows.PAGE_EXECUTE_READWRITE | windows.PAGE_EXECUTE_WRITECOPY
	protectExec = windows.PAGE_EXECUTE | windows.PAGE_EXECUTE_READ | windows.PAGE_EXECUTE_READWRITE |
		windows.PAGE_EXECUTE_WRITECOPY
	memImage = 0x1000000
)

// region returns the region that contains an address. Source: Win32 VirtualQuery.
func (Windows) region(at uint64) (Region, bool) {
	var r windows.MemoryBasicInformation
	if windows.VirtualQuery(uintptr(at), &r, unsafe.Sizeof(r)) != nil || r.RegionSize == 0 {
		return Region{}, false
	}
	return regionOf(&r), true
}

func regionOf(r *windows.MemoryBasicInformation) Region {
	return Region{
		Start: uint64(r.BaseAddress), End: uint64(r.BaseAddress) + uint64(r.RegionSize),
		Committed:  r.State == windows.MEM_COMMIT,
		Readable:   r.Protect&protectRead != 0 && r.Protect&windows.PAGE_GUARD == 0,
		Executable: r.Protect&protectExec != 0,
		Image:      r.Type == memImage,
	}
}

// ReadAt reads this process's memory through the system. It returns false where a load would
// fault.
func (Windows) ReadAt(b []byte, addr uint64) bool {
	var n uintptr
	if len(b) == 0 {
		return true
	}
	err := windows.ReadProcessMemory(windows.CurrentProcess(), uintptr(addr), &b[0], uintptr(len(b)), &n)
	return err == nil && n == uintptr(len(b))
}

var lookupFunctionEntry = windows.NewLazySystemDLL("ntdll.dll").NewProc("RtlLookupFunctionEntry")

// FunctionEntry copies the RUNTIME_FUNCTION registered for pc into entry and returns its
// base address. It takes a system lock that a suspended thread may own. Source: Win32 RtlLookupFunctionEntry.
func (w Windows) FunctionEntry(pc uint64, entry []byte) (base uint64, ok bool) {
	var image uintptr
	at, _, _ := lookupFunctionEntry.Call(uintptr(pc), uintptr(unsafe.Pointer(&image)), 0)
	return uint64(image), at != 0 && w.ReadAt(entry, uint64(at))
}
