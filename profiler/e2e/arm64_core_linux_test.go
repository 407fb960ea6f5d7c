//go:build amd64

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A core of the CLR of ARM64 is walked here and gives the stacks that the sampler saw. Linux cannot write
// such a core of a program under qemu, so the test does: the threads as the probe copied them, the rest as it
// is in the stopped process.
func TestARM64Core(t *testing.T) {
	g := startGuest(t, append(emulator(false), need(t, "out", "samples", "arm64", "Truth"), "240")...)
	fd, conn := g.probe(t)
	file := filepath.Join(tempdir.New(t), "raw")
	e, err := outside.New(g.cmd.Process.Pid, fd, sampler.Config{RateHz: 200, Raw: file, NoWall: true}, io.Discard)
	unix.Close(fd)
	conn.Close()
	must.Do(t, err)
	go func() { // seven seconds with all threads of the program
		g.atWork()
		time.Sleep(7 * time.Second)
		e.Stop()
	}()
	why := e.Run()
	g.cmd.Process.Signal(syscall.SIGSTOP)
	samples, _ := readRaw(t, file, why)
	const deep = 200 << 10 // the notes below do not contain the end of larger stacks
	last := map[uint64]*raw.Sample{}
	for _, s := range samples {
		if s.Result.Gap == merge.GapNone && len(s.Capture.Below.Data) == 0 && len(s.Capture.Stack.Data) < deep {
			last[s.Capture.Thread.TID] = s
		}
	}
	core := filepath.Join(tempdir.New(t), "core")
	must.Do(t, os.WriteFile(core, g.core(t, last), 0o600))
	r := run(t, time.Minute, nil, tool(t), "stack", "--core", core, "--json")
	var got struct {
		Runtime  bool
		Threads  []coreThread
		Problems []string
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != 0 || !got.Runtime || len(got.Threads) != len(last) || len(last) < 5 {
		t.Fatalf("%v, exit code %d, %d threads of %d, %v\n%s", err, r.code, len(got.Threads), len(last), got.Problems, r.stderr)
	}
	if arm := run(t, 4*time.Minute, nil, append(armTool(t), "stack", "--core", core, "--json")...); arm.stdout != r.stdout || arm.code != r.code {
		t.Errorf("the tool of ARM64 shows another core: exit code %d\n%s%s", arm.code, arm.stderr, arm.stdout)
	}
	whole, managed := 0, 0
	for i := range got.Threads {
		n, ok := got.Threads[i].same(t, last[got.Threads[i].TID])
		if managed += n; ok {
			whole++
		}
	}
	t.Logf("%d of %d stacks whole, %d managed frames, %v", whole, len(last), managed, got.Problems)
	if whole < len(last)-1 || managed < 5*whole { // in one stack a return address may have been replaced
		t.Error("too few")
	}
}

type coreThread struct {
	TID      uint64
	Complete bool
	Gap      string
	Frames   []struct{ Kind, Name, IP, SP string }
}

// same compares a stack of a core with a sample's, if it is whole.
func (c *coreThread) same(t *testing.T, s *raw.Sample) (managed int, whole bool) {
	t.Helper()
	if !c.Complete {
		t.Logf("thread %d: %s", c.TID, c.Gap)
		return 0, false
	}
	if s == nil || len(c.Frames) != len(s.Frames) {
		t.Errorf("thread %d has %d frames in the core, %+v sampled", c.TID, len(c.Frames), s)
		return 0, true
	}
	for i, f := range c.Frames {
		if want := s.Frames[i]; f.IP != fmt.Sprintf("%#x", want.IP) || f.SP != fmt.Sprintf("%#x", want.SP) {
			t.Errorf("thread %d, frame %d: %+v, sampled %#x %#x", c.TID, i, f, want.IP, want.SP)
		}
		if f.Kind == "managed" && f.Name != "" {
			managed++
		}
	}
	return managed, true
}

// core is the core that Linux would write of the guest, with the threads of samples.
func (g *guest) core(t *testing.T, threads map[uint64]*raw.Sample) []byte {
	t.Helper()
	mem := must.Get(live.OpenProcess(g.cmd.Process.Pid))(t)
	defer mem.Close()
	images := live.NewGuest(g.cmd.Process.Pid)
	maps := must.Get(images.Maps())(t)
	const aarch64, readable, executable = 183, 4, 1
	c := elfasm.Core{Machine: aarch64}
	for tid, s := range threads {
		r := &s.Capture.Regs.ARM64
		c.Thread(uint32(tid), 0, append(r.X[:len(r.X):len(r.X)], r.Sp, r.PC)...)
	}
	c.Process(uint32(g.cmd.Process.Pid), "Truth")
	var files []elfasm.CoreFile
	for i := range maps {
		m := &maps[i]
		if named := strings.HasPrefix(m.Path, "/"); m.End-m.Start >= 1<<30 || named && !strings.HasPrefix(m.Path, "/memfd:") && !images.Has(m.Path) {
			continue
		} else if named {
			files = append(files, elfasm.CoreFile{Start: m.Start, End: m.End, Offset: m.Offset / 4096, Path: m.Path})
		}
		p := elfasm.CorePart{Flags: readable, Addr: m.Start, Size: m.End - m.Start, Data: memoryOf(mem, m, threads)}
		if m.Exec {
			p.Flags |= executable
		}
		c.Parts = append(c.Parts, p)
	}
	c.Files(files...)
	return c.Bytes()
}

// memoryOf is the readable memory of a mapping, with the samples' stacks. A core does not contain the code of
// files.
func memoryOf(mem *live.Process, m *live.Mapping, threads map[uint64]*raw.Sample) []byte {
	if m.Exec && strings.HasPrefix(m.Path, "/") && !strings.HasPrefix(m.Path, "/memfd:") {
		return nil
	}
	b := make([]byte, m.End-m.Start)
	if n := mem.ReadSome(b, m.Start); n < len(b) {
		b = b[:n]
	}
	for _, s := range threads {
		if off := s.Capture.Stack.Addr - m.Start; off < uint64(len(b)) {
			copy(b[off:], s.Capture.Stack.Data)
		}
	}
	return b
}
