package live

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The page to which signal handlers of an emulated program return is a module with its two instructions; no
// other page of the program is.
func TestSigpage(t *testing.T) {
	const page = 4096
	for _, c := range []struct {
		name  string
		arch  context.Arch
		word  uint64
		pages int
		want  bool
	}{
		{"the page", context.ArchARM64, sigreturn, 1, true},
		{"of another machine", context.ArchAMD64, sigreturn, 1, false},
		{"another system call", context.ArchARM64, sigreturn &^ (1 << 5), 1, false},
		{"more than a page", context.ArchARM64, sigreturn, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := must.Get(unix.Mmap(-1, 0, (c.pages+2)*page, unix.PROT_NONE,
				unix.MAP_PRIVATE|unix.MAP_ANON))(t)
			defer unix.Munmap(all)
			// the pages around it are inaccessible, so the kernel lists it separately
			b := all[page : page*(c.pages+1)]
			must.Do(t, unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE))
			binary.LittleEndian.PutUint64(b, c.word)
			must.Do(t, unix.Mprotect(b, unix.PROT_READ))
			at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
			g := &Guest{pid: os.Getpid(), arch: c.arch, images: map[string]*elf.File{}}
			maps := must.Get(g.Maps())(t)
			table := NewLoader(g.pid).Table(maps)
			i := table.Find(at + 4)
			must.Equal(t, i >= 0, c.want, "a module")
			if !c.want {
				return
			}
			m := table.At(i)
			first, second, none := m.Bytes(at, 4), m.Bytes(at+4, 8), m.Bytes(at+8, 4)
			expect.True(t, m.Err == nil && m.SystemV() && len(first) == 4 && len(second) == 4 &&
				none == nil && binary.LittleEndian.Uint32(second) == sigreturn>>32,
				"%v, % x, % x, % x", m.Err, first, second, none)
		})
	}
}
