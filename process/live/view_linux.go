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

// View reads the mappings of a running process again and again. Where the kernel has
// PROCMAP_QUERY (Linux 6.11), it reads the wanted mappings only: a process may have 60,000
// others. Elsewhere it reads the whole of /proc/PID/maps. It is not safe for concurrent use.
//
// Source: linux/fs.h, struct procmap_query; fs/proc/task_mmu.c, do_procmap_query.
type View struct {
	Queries uint64 // mappings asked for one by one
	Texts   uint64 // times that the whole text was read

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
	procmapIoctl = 3<<30 | uint(unsafe.Sizeof(procmapQuery{}))<<16 | 'f'<<8 | 17 // _IOWR('f', 17, struct procmap_query)

	procmapExecutable = 0x04
	procmapNext       = 0x10 // the next mapping if none holds the address
	procmapFile       = 0x20 // of a file
)

// Executable lists the mappings that may be executed, sorted.
func (v *View) Executable() ([]Mapping, error) {
	return v.list(procmapExecutable, func(m *Mapping) bool { return m.Exec })
}

// Files lists the mappings of files, sorted.
func (v *View) Files() ([]Mapping, error) {
	return v.list(procmapFile, func(m *Mapping) bool { return m.Inode != 0 })
}

// At returns the mapping that holds addr, nil if none does. Without PROCMAP_QUERY the answer is
// as of the last list.
func (v *View) At(addr uint64) *Mapping {
	if !v.plain {
		var m Mapping
		err := v.ask(0, addr, &m)
		switch {
		case err == nil:
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
	return &m
}

// list asks for each mapping that the kernel selects by flags. Without PROCMAP_QUERY it takes
// those of the text that are wanted.
func (v *View) list(flags uint64, wanted func(*Mapping) bool) (out []Mapping, err error) {
	var m Mapping
	for !v.plain {
		err = v.ask(flags|procmapNext, m.End, &m)
		switch {
		case err == unix.ENOENT:
			return out, nil
		case err == nil && len(out) < maxMappings:
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
			out = append(out, v.all[i])
		}
	}
	return out, err
}

// ask asks the kernel for a mapping at or behind addr. ENOENT says that there is none. The file
// is that of the program at the time when it was opened: after an exec it is opened again.
func (v *View) ask(flags, addr uint64, m *Mapping) error {
	err := v.ioctl(flags, addr, m)
	if err == unix.ESRCH {
		v.Close()
		err = v.ioctl(flags, addr, m)
	}
	switch err {
	case unix.ENOTTY, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EACCES: // an old kernel, or a filter of calls
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
	*q = procmapQuery{size: uint64(unsafe.Sizeof(*q)), flags: flags, addr: addr, nameSize: uint32(len(v.name)),
		nameAddr: uint64(uintptr(unsafe.Pointer(&v.name[0])))}
	v.Queries++
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, v.file.Fd(), uintptr(procmapIoctl), uintptr(unsafe.Pointer(q))); e != 0 {
		return e
	}
	if q.end <= q.start || q.nameSize > uint32(len(v.name)) {
		return unix.ENOENT
	}
	*m = Mapping{Start: q.start, End: q.end, Offset: q.offset, Inode: q.inode, Exec: q.perms&procmapExecutable != 0}
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
