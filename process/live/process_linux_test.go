package live

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// This process: its own code must be found, with the bias that maps a known function's address to the file's.
func TestTableOfThisProcess(t *testing.T) {
	maps := must.Get(Maps(0))(t)
	l := NewLoader(0)
	table := l.Table(maps)
	pc, _, _, _ := runtime.Caller(0)
	i := table.Find(uint64(pc))
	must.True(t, i >= 0, "no module at %#x", pc)
	m := table.At(i)
	exe, _ := os.Executable()
	expect.True(t, m.Path == exe && m.ELF != nil, "module %q, error %v", m.Path, m.Err)
	b, ok := m.ELF.BytesAt(uint64(pc)-m.Bias, 1)
	expect.True(t, ok && len(b) == 1, "pc %#x is not in the file at bias %#x", pc, m.Bias)
	again := l.Table(maps)
	if again.At(i).ID != m.ID || again.At(i).ELF != m.ELF || again.Generation() == table.Generation() {
		t.Error("a second table must share the images, keep their IDs, and have a generation of its own")
	}
	vdso(t, l, maps)
}

func vdso(t *testing.T, l *Loader, maps []Mapping) {
	t.Helper()
	for i := range maps {
		if maps[i].Path != "[vdso]" {
			continue
		}
		if m := l.image(&maps[i]); m.CFI == nil || m.Bias != maps[i].Start {
			t.Errorf("vdso: bias %#x, CFI %v, error %v", m.Bias, m.CFI, m.Err)
		}
	}
}

// TestOpened: the records of another process's image are read only after a table is made, and then in the
// background; those of this process's images are read at once.
func TestOpened(t *testing.T) {
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	f, err := elf.Map(libc)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no x86-64 libc on this host")
	}
	var m Mapping
	for _, s := range f.Segments() {
		if s.Executable() {
			m = Mapping{Start: 0x10000000 + s.Vaddr, End: 0x10000000 + s.Vaddr + s.Memsz,
				Offset: s.Off, Exec: true, Path: libc}
		}
	}
	open := func(pid int) (*Loader, *module.Module) {
		l := NewLoader(pid)
		l.Image = func(*Mapping) (*elf.File, error) { return f, nil }
		return l, l.image(&m)
	}
	_, own := open(0)
	expect.True(t, own.CFI.Read(), "of this process not all was read")
	l, mod := open(os.Getpid())
	must.True(t, mod.CFI != nil && !mod.CFI.Read(), "read before it was asked for: %v", mod.Err)
	if got := l.Table([]Mapping{m}).At(0).CFI; got != mod.CFI || len(l.opened) != 0 {
		t.Errorf("another table, or still to be read: %d", len(l.opened))
	}
	for range 6000 { // a minute: it takes 2 ms
		if mod.CFI.Read() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("never read")
}

// Child processes that end while they are being stopped can still be waited for, with their exit code.
func TestStopLeavesEndToParent(t *testing.T) {
	looked := 0
	for range 300 {
		cmd := exec.Command("sh", "-c", "exit 7")
		must.Do(t, cmd.Start())
		for gone := false; !gone; {
			StopEach([]int{cmd.Process.Pid}, func(int, *context.Registers, Stood) { looked++ }, func(s Stop) {
				var e *StopError
				if gone = errors.As(s.Err, &e); gone && e.Why == Denied {
					t.Skip("SKIPPED-CHECK: this machine lets no process be stopped")
				}
			})
		}
		_ = cmd.Wait()
		must.True(t, cmd.ProcessState.ExitCode() == 7, "Wait says %v, want exit code 7", cmd.ProcessState)
	}
	t.Logf("%d stops", looked)
}

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
			expect.Equal(t, r.ReadAt(got, c.at), c.whole, "ReadAt")
			clear(got)
			n := p.ReadSome(got, c.at)
			expect.True(t, n == c.some && bytes.Equal(got[:n], []byte("seedwalk")[:n]),
				"ReadSome: %d bytes %q, want %d", n, got[:n], c.some)
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
	expect.True(t, p.ReadAt(got, uint64(uintptr(unsafe.Pointer(&want[0])))) && bytes.Equal(got, want),
		"read %q", got)
	for _, bad := range []uint64{8, 1 << 47, ^uint64(15)} {
		expect.True(t, !p.ReadAt(got, bad), "read at %#x", bad)
	}
}
