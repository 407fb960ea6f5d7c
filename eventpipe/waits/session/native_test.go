package session_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/pe"
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
		{"outside", `C:\app\demo.dll`, f.Stamp(), uint64(f.SizeOfImage()), fmt.Sprintf("%#x", base+uint64(f.SizeOfImage()))},
	} {
		n := waits.NewNames()
		line := fmt.Sprintf("%x-%x r-xp 00000000 00:00 %d %s\n", base, base+uint64(f.SizeOfImage()), c.stamp, c.path)
		must.Do(t, session.ReadMaps(n, strings.NewReader(line), dir))
		if got := n.Frame(base+c.addr, 0).Name; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
