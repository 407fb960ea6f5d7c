package session

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/pe"
)

var getThreadDescription = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetThreadDescription")

// threadNames finds the descriptions of threads (Windows 10 1607).
type threadNames struct{}

func newThreadNames(int) threadNames { return threadNames{} }

// name returns a thread's description.
func (threadNames) name(tid uint64) string {
	if getThreadDescription.Find() != nil {
		return ""
	}
	h, err := windows.OpenThread(windows.THREAD_QUERY_LIMITED_INFORMATION, false, uint32(tid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	var text *uint16
	if hr, _, _ := getThreadDescription.Call(uintptr(h), uintptr(unsafe.Pointer(&text))); int32(hr) < 0 ||
		text == nil {
		return ""
	}
	defer windows.LocalFree(windows.Handle(unsafe.Pointer(text)))
	return windows.UTF16PtrToString(text)
}

// isInode accepts every file. Windows images are compared by their time stamps.
func isInode(string, uint64) bool { return true }

// snapshotTries bounds how often the list of images is requested.
const snapshotTries = 16

// images reads the currently loaded images of a process. Source: Win32, "Tool Help".
func images(n *waits.Names, pid int) {
	var snapshot windows.Handle
	err := error(windows.ERROR_BAD_LENGTH) // the list of images changed: try again
	for tries := 0; err == windows.ERROR_BAD_LENGTH && tries < snapshotTries; tries++ {
		snapshot, err = windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPMODULE, uint32(pid))
	}
	if err != nil {
		return
	}
	defer windows.CloseHandle(snapshot)
	var out []waits.Image
	e := windows.ModuleEntry32{Size: uint32(unsafe.Sizeof(windows.ModuleEntry32{}))}
	for err = windows.Module32First(snapshot, &e); err == nil; err = windows.Module32Next(snapshot, &e) {
		im := waits.Image{Start: uint64(e.ModBaseAddr), End: uint64(e.ModBaseAddr) + uint64(e.ModBaseSize),
			Path: windows.UTF16ToString(e.ExePath[:])}
		if f, err := pe.Open(im.Path); err == nil {
			im.BuildID = stampID(uint64(f.Stamp()))
		}
		out = append(out, im)
	}
	addImages(n, out, newNativeNames("", ""))
}
