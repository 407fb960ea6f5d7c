package session_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestWindowsNames: addresses in a trace of Windows are named by the listed images, if these are next to the
// trace and of the same build.
func TestWindowsNames(t *testing.T) {
	const cc = "x86_64-w64-mingw32-gcc"
	needs.Command(t, cc)
	dir := tempdir.New(t)
	dll := filepath.Join(dir, "demo.dll")
	must.Run(t, exec.Command(cc, "-O2", "-shared", "-o", dll, "../../../profiler/testdata/demo.c"))
	f := must.Get(pe.Open(dll))(t)
	exports, _ := f.Exports()
	var at uint64
	for _, e := range exports {
		if e.Name == "demo_quicksort" {
			at = uint64(e.RVA)
		}
	}
	const base = 0x7ffa12340000
	for _, c := range []struct {
		name, path string
		stamp      uint32
		addr       uint64
		want       string
	}{
		{"in a function", `C:\Program Files\app\demo.dll`, f.Stamp(), at + 8, "demo_quicksort"},
		{"of a share", `\\server\app\demo.dll`, f.Stamp(), at + 8, "demo_quicksort"},
		{"a header's byte", `C:\app\demo.dll`, f.Stamp(), 0x11, "demo.dll+0x11"},
		{"another build", `C:\app\demo.dll`, f.Stamp() + 1, at + 8, fmt.Sprintf("demo.dll+%#x", at+8)},
		{"not here", `C:\app\other.dll`, f.Stamp(), 0x1008, "other.dll+0x1008"},
		{"outside", `C:\app\demo.dll`, f.Stamp(), uint64(f.SizeOfImage()),
			fmt.Sprintf("%#x", base+uint64(f.SizeOfImage()))},
	} {
		n := waits.NewNames()
		line := fmt.Sprintf("%x-%x r-xp 00000000 00:00 %d %s\n", base,
			base+uint64(f.SizeOfImage()), c.stamp, c.path)
		must.Do(t, session.ReadMaps(n, strings.NewReader(line), dir))
		expect.Equal(t, n.Frame(base+c.addr, 0).Name, c.want, c.name)
	}
}

// An address without a name is in the image's own addresses, which may differ from the offsets in its file.
func TestLinuxNames(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("SKIPPED-CHECK: no gcc for Linux")
	}
	lib := filepath.Join(tempdir.New(t), "libdemo.so")
	must.Run(t, exec.Command("gcc", "-O2", "-shared", "-s", "-fPIC", "-Wl,-Ttext=0x345000", "-o", lib,
		"../../../profiler/testdata/demo.c"))
	f := must.Get(elf.Open(lib))(t)
	number := must.Get(exec.Command("stat", "-c", "%i", lib).Output())(t)
	inode := must.Get(strconv.ParseUint(strings.TrimSpace(string(number)), 10, 64))(t)
	exports := 0
	for _, s := range f.Segments() {
		if !s.Executable() || s.Vaddr == s.Off {
			continue
		}
		const base = 0x7fff12340000
		line := func(inode uint64) string {
			return fmt.Sprintf("%x-%x r-xp %08x 08:01 %d %s\n", base, base+s.Filesz, s.Off, inode, lib)
		}
		n := waits.NewNames()
		must.Do(t, session.ReadMaps(n, strings.NewReader(line(inode)), ""))
		other := waits.NewNames() // a file of a container, or one that was replaced
		must.Do(t, session.ReadMaps(other, strings.NewReader(line(inode+1)), ""))
		for at := s.Vaddr + 1; at <= s.Vaddr+s.Filesz-1; at++ {
			foreign := other.Frame(base+at-s.Vaddr, 0)
			must.True(t, !foreign.Named, "%#x is named %s by another file", at, foreign.Name)
			switch name := n.Frame(base+at-s.Vaddr, 0).Name; {
			case name == "demo_quicksort":
				exports++
			case strings.HasPrefix(name, "libdemo.so+") && name != fmt.Sprintf("libdemo.so+%#x", at):
				t.Fatalf("%#x: %s", at, name)
			}
		}
	}
	expect.True(t, exports != 0, "no address in demo_quicksort")
}
