package live

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/must"
	"golang.org/x/sys/unix"
)

// This process's own memory, with an unreadable page in the middle.
func TestProcessRead(t *testing.T) {
	page := os.Getpagesize()
	b := must.Get(unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	defer unix.Munmap(b)
	addr := uint64(uintptr(unsafe.Pointer(&b[0])))
	copy(b[page-8:], "seedwalk")
	must.Do(t, unix.Mprotect(b[page:], unix.PROT_NONE))
	p := must.Get(OpenProcess(os.Getpid()))(t)
	defer p.Close()
	var r memory.Reader = p
	for _, c := range []struct {
		name  string
		at    uint64
		size  int
		whole bool
		some  int
	}{
		{"all of it", addr + uint64(page) - 8, 8, true, 8},
		{"nothing asked", addr, 0, true, 0},
		{"into the hole", addr + uint64(page) - 8, 16, false, 8},
		{"in the hole", addr + uint64(page), 8, false, 0},
		{"an address that no process has", 1 << 63, 8, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]byte, c.size)
			if ok := r.ReadAt(got, c.at); ok != c.whole {
				t.Errorf("ReadAt: %v, want %v", ok, c.whole)
			}
			clear(got)
			n := p.ReadSome(got, c.at)
			if n != c.some || !bytes.Equal(got[:n], []byte("seedwalk")[:n]) {
				t.Errorf("ReadSome: %d bytes %q, want %d", n, got[:n], c.some)
			}
		})
	}
}

// If the system call is forbidden, the kernel's file is read. It ignores a page's protection, but knows what
// is mapped.
func TestProcessReadFile(t *testing.T) {
	mem := must.Get(os.Open("/proc/self/mem"))(t)
	p := &Process{mem: mem}
	defer p.Close()
	want := []byte("seedwalk")
	got := make([]byte, len(want))
	if !p.ReadAt(got, uint64(uintptr(unsafe.Pointer(&want[0])))) || !bytes.Equal(got, want) {
		t.Errorf("read %q", got)
	}
	for _, bad := range []uint64{8, 1 << 47, ^uint64(15)} {
		if p.ReadAt(got, bad) {
			t.Errorf("read at %#x", bad)
		}
	}
}
