package options

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Bias is empty where threads are suspended at any instruction.
const Bias = ""

// suspends describes the snapshot mode.
const suspends = "one thread is suspended at a time, and the CLR asked for its stack, by a library in the process"

// LibraryName is the file of the library that asks the CLR for stacks (--mode snapshot).
const LibraryName = "seedwalk_profiler.dll"

// NativeMachine returns the machine's own architecture, named as GOARCH is; "" if it is unknown, as
// before Windows 10 1511.
func NativeMachine() string {
	f := windows.NewLazySystemDLL("kernel32.dll").NewProc("IsWow64Process2")
	if f.Find() != nil {
		return ""
	}
	var process, native uint16
	if ok, _, _ := f.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&process)),
		uintptr(unsafe.Pointer(&native))); ok == 0 {
		return ""
	}
	switch native { // IMAGE_FILE_MACHINE_*
	case 0x8664:
		return "amd64"
	case 0xaa64:
		return "arm64"
	}
	return ""
}

// FewFiles returns nil: handles have no limit.
func FewFiles() *Refusal { return nil }
