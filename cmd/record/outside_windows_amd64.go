package record

import (
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

// sampled handles processes that connect; on Windows none is made to do so.
func (s *server) sampled(c listen.Stream, _ int) (listen.Stream, error) {
	c.Close()
	return nil, fmt.Errorf("a profiler connected, and processes are recorded from outside")
}

// followEvery is how often processes are looked for.
const followEvery = 20 * time.Millisecond

// follow finds the command's .NET processes, and samples them.
func (r *run) follow() {
	if r.opt.Mode == options.ModeProbe {
		go r.srv.followTree(uint32(r.cmd.Process.Pid), r.exited)
	}
}

// followTree samples the descendants of root until root has ended.
func (s *server) followTree(root uint32, ended <-chan struct{}) {
	f := family{members: map[uint32]*member{}}
	defer f.close()
	f.add(root)
	for {
		select {
		case <-ended:
			return
		case <-time.After(followEvery):
		}
		f.grow()
		for pid, m := range f.members {
			s.consider(pid, m)
		}
	}
}

// consider starts to sample a process as soon as it has a runtime.
func (s *server) consider(pid uint32, m *member) {
	if !m.decided && m.prospect == nil { // it is being created
		m.prospect, _ = suspended.OpenProspect(int(pid))
	}
	if m.decided || m.prospect == nil {
		return
	}
	state, why := m.prospect.Look()
	switch state {
	case suspended.Ready:
		if err := s.engine(int(pid)); err != nil {
			s.refuse(err.Error())
		}
	case suspended.Refused:
		s.note(fmt.Sprintf("process %d (%s) is not sampled: %s; --mode snapshot is for it", pid, listen.ProcessName(int(pid)), why))
	default:
		return
	}
	m.decided = true
	m.close()
}

func (s *server) engine(pid int) error {
	here, there := net.Pipe()
	e, err := suspended.New(pid, s.outside, there)
	if err != nil {
		return err
	}
	s.add(running(e, here, there), pid)
	return nil
}

// family are a process and its descendants.
type family struct{ members map[uint32]*member }

// member is a process of a family.
type member struct {
	handle   windows.Handle      // keeps the process number from being reused
	prospect *suspended.Prospect // nil: it may not be read, or has ended
	born     int64
	decided  bool
}

// maxFamily limits the size of a family.
const maxFamily = 1 << 12

// add adds a process; false if it cannot be opened.
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

// birth is when a process began, in the system's time; negative while it is being created.
func birth(h windows.Handle) int64 {
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &made, &ended, &kernel, &user) != nil {
		return 0
	}
	return made.Nanoseconds()
}

// grow adds the processes that members have started. A parent's number may have been used by another process
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
			m.close() // not a child: the number was reused
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
