package record

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/sample/suspended"
)

// family are a process and its descendants.
type family struct{ members map[uint32]*member }

// member is a process of a family.
type member struct {
	handle   windows.Handle      // keeps its number from being given to another
	prospect *suspended.Prospect // nil: it may not be read, or has ended
	born     int64
	decided  bool
}

// maxFamily bounds a family.
const maxFamily = 1 << 12

// add takes a process in; false if it cannot be opened.
func (f *family) add(pid uint32) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return false
	}
	m := &member{handle: h, born: birth(h)}
	m.prospect, _ = suspended.OpenProspect(int(pid))
	f.members[pid] = m
	return true
}

// birth is when a process began, in the system's time; below 0 of one that is only
// just being made.
func birth(h windows.Handle) int64 {
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &made, &ended, &kernel, &user) != nil {
		return 0
	}
	return made.Nanoseconds()
}

// grow takes in what members have started. A parent's number may have been another's
// before: a child is younger than its parent.
func (f *family) grow() {
	h, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(h, &entry); err == nil && len(f.members) < maxFamily; err = windows.Process32Next(h, &entry) {
		parent := f.members[entry.ParentProcessID]
		if parent == nil || f.members[entry.ProcessID] != nil || !f.add(entry.ProcessID) {
			continue
		}
		if m := f.members[entry.ProcessID]; m.born > 0 && m.born < parent.born {
			m.close() // a stranger
			m.decided = true
		}
	}
}

func (m *member) close() {
	if m.prospect != nil {
		m.prospect.Close()
		m.prospect = nil
	}
}

func (f *family) close() {
	for _, m := range f.members {
		m.close()
		windows.CloseHandle(m.handle)
	}
}
