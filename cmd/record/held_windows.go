package record

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// held is the shared section in which a profiler publishes the state of its sampler:
// profiler/host/held_windows.h.
type held struct {
	sampler uint32
	thread  uint32 // changed by the sampler
}

// resumeHeld waits for the end of a process's sampler. Another thread may end the process, and with it the
// sampler, while the sampler has a thread suspended. Nothing in the process can then resume the thread, and
// the process would neither run nor end. So the tool resumes the thread, and note receives a line about it.
func resumeHeld(where string, pid int, note func(string)) {
	h := heldOf(where, pid)
	if h == nil {
		return // access to the section is denied: continue without it
	}
	defer windows.UnmapViewOfFile(uintptr(unsafe.Pointer(h)))
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(process)
	sampler, err := windows.OpenThread(windows.SYNCHRONIZE, false, h.sampler)
	if err != nil {
		return
	}
	defer windows.CloseHandle(sampler)
	if e, err := windows.WaitForMultipleObjects([]windows.Handle{process, sampler}, false,
		windows.INFINITE); err != nil || e == windows.WAIT_OBJECT_0 {
		return
	}
	if tid := atomic.LoadUint32(&h.thread); tid != 0 && resume(process, tid) {
		note(fmt.Sprintf("process %d: its sampler was ended while thread %d was suspended; the thread was resumed", pid, tid))
	}
}

// The request may still be in transit when its sender has ended.
const (
	resumeEvery = 10 * time.Millisecond
	resumeTries = 500
)

// resume undoes one suspension of a thread. If another process has suspended the thread too, it does not
// matter which of the two is undone.
func resume(process windows.Handle, tid uint32) bool {
	thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, tid)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(thread)
	for range resumeTries {
		if before, err := windows.ResumeThread(thread); err != nil {
			return false
		} else if before > 0 {
			return true
		}
		if e, _ := windows.WaitForSingleObject(process,
			uint32(resumeEvery.Milliseconds())); e == windows.WAIT_OBJECT_0 {
			return false
		}
	}
	return false
}

const fileMapRead = 4 // FILE_MAP_READ of memoryapi.h

var openFileMapping = windows.NewLazySystemDLL("kernel32.dll").NewProc("OpenFileMappingW")

// heldOf maps the section of a process. It returns nil without one.
func heldOf(where string, pid int) *held {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`Local\seedwalk-held-%d-%s`, pid,
		where[strings.LastIndexByte(where, ':')+1:]))
	if err != nil {
		return nil
	}
	section, _, _ := openFileMapping.Call(fileMapRead, 0, uintptr(unsafe.Pointer(name)))
	if section == 0 {
		return nil
	}
	defer windows.CloseHandle(windows.Handle(section))
	at, err := windows.MapViewOfFile(windows.Handle(section), fileMapRead, 0, 0, unsafe.Sizeof(held{}))
	if err != nil {
		return nil
	}
	return *(**held)(unsafe.Pointer(&at))
}
