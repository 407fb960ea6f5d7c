package live

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"
)

// View reads the mappings of a running process repeatedly. If the kernel has PROCMAP_QUERY (Linux 6.11), it
// reads only the wanted mappings: a process may have 60,000 others. Otherwise it reads all of /proc/PID/maps.
// It is not safe for concurrent use.
//
// Source: linux/fs.h, struct procmap_query; fs/proc/task_mmu.c, do_procmap_query.
type View struct {
	Queries uint64 // single queries
	Texts   uint64 // readings of the whole text

	pid   int
	file  *os.File // /proc/PID/maps, nil = not open
	plain bool     // the kernel has no PROCMAP_QUERY
	query procmapQuery
	name  [unix.PathMax]byte
	paths map[string]string
	text  bytes.Buffer
	all   []Mapping // of the last text
}

// NewView returns a view of process pid. It opens nothing yet.
func NewView(pid int) *View { return &View{pid: pid, paths: map[string]string{}} }

// Close closes the process's maps file.
func (v *View) Close() {
	if v.file != nil {
		v.file.Close()
		v.file = nil
	}
}

// procmapQuery is the kernel's struct procmap_query.
type procmapQuery struct {
	size, flags, addr                   uint64
	start, end, perms, pageSize, offset uint64
	inode                               uint64
	devMajor, devMinor                  uint32
	nameSize, buildIDSize               uint32
	nameAddr, buildIDAddr               uint64
}

const (
	// _IOWR('f', 17, struct procmap_query)
	procmapIoctl = 3<<30 | uint(unsafe.Sizeof(procmapQuery{}))<<16 | 'f'<<8 | 17

	procmapExecutable = 0x04
	procmapNext       = 0x10 // the next mapping if none contains the address
	procmapFile       = 0x20 // only mappings of files
)

// Executable lists the executable mappings, sorted.
func (v *View) Executable() ([]Mapping, error) {
	return v.list(procmapExecutable, func(m *Mapping) bool { return m.Exec })
}

// Files lists the mappings of files, sorted.
func (v *View) Files() ([]Mapping, error) {
	return v.list(procmapFile, func(m *Mapping) bool { return m.Inode != 0 })
}

// At returns the mapping that contains addr, or nil. Without PROCMAP_QUERY the answer is as of
// the last list.
func (v *View) At(addr uint64) *Mapping {
	if !v.plain {
		var m Mapping
		err := v.ask(0, addr, &m)
		switch {
		case err == nil:
			v.date(&m)
			return &m
		case !v.plain:
			return nil
		}
	}
	i := sort.Search(len(v.all), func(i int) bool { return v.all[i].End > addr })
	if i == len(v.all) || v.all[i].Start > addr {
		return nil
	}
	m := v.all[i]
	v.date(&m)
	return &m
}

// date sets when the file of a mapping with code was last written.
func (v *View) date(m *Mapping) {
	var st unix.Stat_t
	if m.Exec && m.Inode != 0 && unix.Stat(fmt.Sprintf("/proc/%d/root%s", v.pid, m.Path), &st) == nil &&
		st.Ino == m.Inode {
		m.Written = st.Mtim.Nano()
	}
}

// list queries each mapping that matches flags. Without PROCMAP_QUERY it selects wanted mappings from the
// text.
func (v *View) list(flags uint64, wanted func(*Mapping) bool) (out []Mapping, err error) {
	var m Mapping
	for !v.plain {
		err = v.ask(flags|procmapNext, m.End, &m)
		switch {
		case err == unix.ENOENT:
			return out, nil
		case err == nil && len(out) < maxMappings:
			v.date(&m)
			out = append(out, m)
		case !v.plain:
			return out, err
		}
	}
	if err = v.read(); err != nil && len(v.all) == 0 {
		return nil, err
	}
	for i := range v.all {
		if wanted(&v.all[i]) {
			v.date(&v.all[i])
			out = append(out, v.all[i])
		}
	}
	return out, err
}

// ask queries a mapping at or after addr. ENOENT means that there is none. The open file belongs to the
// program as it was then: after an exec it is opened again.
func (v *View) ask(flags, addr uint64, m *Mapping) error {
	err := v.ioctl(flags, addr, m)
	if err == unix.ESRCH {
		v.Close()
		err = v.ioctl(flags, addr, m)
	}
	switch err {
	case unix.ENOTTY, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EACCES:
		// An old kernel, or a system call filter.
		v.plain = true
		v.Close()
	}
	return err
}

func (v *View) ioctl(flags, addr uint64, m *Mapping) error {
	if v.file == nil {
		f, err := os.Open(fmt.Sprintf("/proc/%d/maps", v.pid))
		if err != nil {
			return err
		}
		v.file = f
	}
	q := &v.query
	*q = procmapQuery{size: uint64(unsafe.Sizeof(*q)), flags: flags, addr: addr,
		nameSize: uint32(len(v.name)),
		nameAddr: uint64(uintptr(unsafe.Pointer(&v.name[0])))}
	v.Queries++
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, v.file.Fd(), uintptr(procmapIoctl),
		uintptr(unsafe.Pointer(q))); e != 0 {
		return e
	}
	if q.end <= q.start || q.nameSize > uint32(len(v.name)) {
		return unix.ENOENT
	}
	*m = Mapping{Start: q.start, End: q.end, Offset: q.offset, Inode: q.inode,
		Exec: q.perms&procmapExecutable != 0}
	if q.nameSize > 0 {
		m.Path = intern(v.paths, v.name[:q.nameSize-1])
	}
	return nil
}

// read reads the whole text.
func (v *View) read() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", v.pid))
	if err != nil {
		return err
	}
	defer f.Close()
	v.Texts++
	v.text.Reset()
	if _, err = v.text.ReadFrom(f); err != nil && err != io.EOF {
		return err
	}
	v.all, err = parseMaps(v.text.Bytes(), v.all[:0], v.paths)
	return err
}
