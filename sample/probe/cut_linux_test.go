package probe

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A hostile program cuts off the file that it shares with the tool. The tool reads zeros, and writes to
// memory of its own.
func TestFileIsCutOff(t *testing.T) {
	wholefile.ReadCutAsZeros()
	fd := must.Get(unix.MemfdCreate("seedwalk-probe", unix.MFD_CLOEXEC))(t)
	defer unix.Close(fd)
	must.Do(t, unix.Ftruncate(fd, FullSize))
	b := must.Get(unix.Mmap(fd, 0, HeaderSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))(t)
	h := (*header)(unsafe.Pointer(&b[0]))
	h.magic, h.version, h.arch, h.head = Magic, Version, uint32(context.ArchAMD64), align
	must.Do(t, unix.Munmap(b))
	f := must.Get(Open(fd, unix.Getpid()))(t)
	must.Do(t, unix.Ftruncate(fd, 0))
	f.Beat()
	f.Read(func(*Record) { t.Error("a record") })
	must.Get(f.Slot(7))(t)
	expect.Equal(t, f.Stats(), Stats{})
	must.Do(t, f.Close())
}
