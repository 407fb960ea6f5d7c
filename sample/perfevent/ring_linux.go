package perfevent

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring is memory that the kernel writes records to.
type Ring struct {
	Buffer
	mem []byte
}

// MapRing maps a ring for an event. Its data is size bytes, rounded up to a power-of-two number of pages. If
// the user's limit of locked memory is too low, it is halved, down to least; after that the error wraps
// ErrLimit.
func MapRing(e *Event, size, least int) (*Ring, error) {
	page := os.Getpagesize()
	data := page
	for data < size {
		data *= 2
	}
	for {
		r, err := mapRing(e.fd, page, data)
		if err == nil || data/2 < max(least, page) {
			return r, err
		}
		data /= 2
	}
}

func mapRing(fd, page, data int) (*Ring, error) {
	mem, err := unix.Mmap(fd, 0, page+data, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	switch err {
	case nil:
	case unix.EPERM, unix.EAGAIN, unix.ENOMEM: // limit of locked memory
		return nil, &Error{"mmap", ErrLimit, err}
	default:
		return nil, failed("mmap", err)
	}
	head := (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))
	return &Ring{mem: mem, Buffer: Buffer{data: mem[page:],
		head: &head.Data_head, tail: &head.Data_tail}}, nil
}

// Size returns the capacity of the ring in bytes.
func (r *Ring) Size() int { return len(r.data) }

// Share redirects the records of another event of the same CPU to the ring of e.
func (e *Event) Share(other *Event) error {
	return failed("PERF_EVENT_IOC_SET_OUTPUT",
		unix.IoctlSetInt(other.fd, unix.PERF_EVENT_IOC_SET_OUTPUT, e.fd))
}

// Close unmaps the ring.
func (r *Ring) Close() error { return unix.Munmap(r.mem) }
