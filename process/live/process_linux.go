package live

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process reads the memory of another process, or of this one, through the kernel. It is a memory.Reader and
// not safe for concurrent use.
type Process struct {
	pid    int
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
	mem    *os.File // used if process_vm_readv is forbidden (seccomp)
}

// OpenProcess uses process_vm_readv(2), or /proc/PID/mem if that is not permitted.
func OpenProcess(pid int) (*Process, error) {
	p := &Process{pid: pid}
	// A read of no bytes is not checked by the kernel, so one byte is requested, at an address that is never
	// mapped.
	local, remote := []unix.Iovec{{Base: new(byte), Len: 1}}, []unix.RemoteIovec{{Base: 0, Len: 1}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err == nil || err == unix.EFAULT {
		return p, nil
	}
	mem, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		return nil, err
	}
	p.mem = mem
	return p, nil
}

// Close closes what OpenProcess opened.
func (p *Process) Close() error {
	if p.mem == nil {
		return nil
	}
	return p.mem.Close()
}

// ReadAt implements memory.Reader.
func (p *Process) ReadAt(b []byte, addr uint64) bool {
	return p.ReadSome(b, addr) == len(b)
}

// ReadSome reads as much of b from addr as is readable without a gap and returns the number of bytes.
func (p *Process) ReadSome(b []byte, addr uint64) int {
	if len(b) == 0 || int64(addr) < 0 {
		return 0
	}
	if p.mem != nil {
		n, _ := p.mem.ReadAt(b, int64(addr))
		return n
	}
	p.local[0].Base = &b[0]
	p.local[0].SetLen(len(b))
	p.remote[0].Base, p.remote[0].Len = uintptr(addr), len(b)
	n, err := unix.ProcessVMReadv(p.pid, p.local[:], p.remote[:], 0)
	p.local[0].Base = nil
	if err != nil {
		return 0
	}
	return n
}
