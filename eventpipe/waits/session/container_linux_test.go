package session

import (
	"bufio"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// TestContainerNames: a function of a library that only the process sees, as in a container, has its name,
// also after the process's end.
func TestContainerNames(t *testing.T) {
	libc, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(libc) == 0 || exec.Command("unshare", "-m", "true").Run() != nil {
		t.Skip("SKIPPED-CHECK: no mount namespace with a glibc can be made here (it needs root and unshare)")
	}
	dir := tempdir.New(t)
	cmd := exec.Command("unshare", "-m", "sh", "-c",
		`mount -t tmpfs none "$0" && cp "$1" "$0" && echo ready && LD_LIBRARY_PATH="$0" exec sleep 60`, dir, libc[0])
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	end := func() { cmd.Process.Kill(); cmd.Wait() }
	defer end()
	must.Get(bufio.NewReader(out).ReadString('\n'))(t)

	f := must.Get(elf.Open(libc[0]))(t)
	symbols := must.Get(f.DynamicSymbols())(t)
	abort := symbols[slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "abort" })].Value
	n := waits.NewNames()
	at := uint64(0) // where abort is mapped
	for range 500 { // until sleep has its libraries
		images(n, cmd.Process.Pid)
		for _, im := range n.Images {
			for _, s := range f.Progs {
				code := s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0
				if code && im.Path == filepath.Join(dir, "libc.so.6") {
					at = im.Start - im.Offset + abort - s.Vaddr + s.Off
				}
			}
		}
		if at != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	end()
	expect.Equal(t, n.Frame(at+4, 0).Name, "abort")
}
