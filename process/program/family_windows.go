package program

import (
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Family is a process and its descendants. It keeps them open, so that no other process gets their numbers.
// It is not safe for concurrent use.
type Family struct{ members map[int]member }

type member struct {
	handle windows.Handle
	start  int64 // system time in nanoseconds, 0 if unknown, negative while the process is created
}

// maxFamily limits the size of a family.
const maxFamily = 1 << 12

// NewFamily returns the family of a process. It is empty if the process cannot be opened.
func NewFamily(pid int) *Family {
	f := &Family{members: map[int]member{}}
	f.add(pid, 0)
	return f
}

// add adds a process and reports whether it did: the process can be opened and has started after since.
func (f *Family) add(pid int, since int64) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	start := startOf(h)
	if start > 0 && start < since {
		windows.CloseHandle(h)
		return false
	}
	f.members[pid] = member{h, start}
	return true
}

func startOf(h windows.Handle) int64 {
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &made, &ended, &kernel, &user) != nil {
		return 0
	}
	return made.Nanoseconds()
}

// Grow adds the processes that members have started. An older process is no child: another process had its
// parent's number before.
func (f *Family) Grow() {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return
	}
	defer windows.CloseHandle(list)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(list, &entry); err == nil &&
		len(f.members) < maxFamily; err = windows.Process32Next(list, &entry) {
		parent, child := f.members[int(entry.ParentProcessID)]
		if _, known := f.members[int(entry.ProcessID)]; child && !known {
			f.add(int(entry.ProcessID), parent.start)
		}
	}
}

// PIDs returns the numbers of all members, those that have ended included, in no order.
func (f *Family) PIDs() []int { return slices.Collect(maps.Keys(f.members)) }

// Close closes the members.
func (f *Family) Close() {
	for _, m := range f.members {
		windows.CloseHandle(m.handle)
	}
}
