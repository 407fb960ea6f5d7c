//go:build amd64

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/armrun"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// The JIT's prologs and epilogs for ARM64 are executed instruction by instruction, and undone by the unwind
// codes that the JIT wrote. The result must be the registers with which the method was entered, at whichever
// instruction a thread is interrupted.
func TestARM64Codes(t *testing.T) {
	methods, replaced := 400, 0 // the program starts with that many
	if *armSamples > 1000 {
		methods, replaced = 1000, 1 // replacement on the stack comes late
	}
	g := startGuest(t, append(emulator(false), need(t, "out", "samples", "arm64", "Truth"), "180")...)
	fd, conn := g.probe(t)
	unix.Close(fd)
	conn.Close()
	g.atWork()
	var c codes
	for end := time.Now().Add(3 * time.Minute); c.functions < methods || c.shifted < replaced; {
		must.True(t, !time.Now().After(end), "%+v", c)
		time.Sleep(3 * time.Second)
		g.Process.Signal(syscall.SIGSTOP)
		c = codes{}
		c.all(t, g)
		g.Process.Signal(syscall.SIGCONT)
	}
	expect.Figures(t, c.functions/10 >= c.skipped && c.prolog >= 3*c.functions && c.epilogs >= c.functions/2,
		"%d functions, %d not understood, %d entered in another's frame: %d instructions of prologs, and %d of %d epilogs",
		c.functions, c.skipped, c.shifted, c.prolog, c.epilog, c.epilogs)
}

// codes counts functions, and instructions at which a frame was undone.
type codes struct {
	functions, skipped, shifted, prolog, epilog, epilogs int
}

// all runs every method that the guest's runtime has compiled.
func (c *codes) all(t *testing.T, g *guest) {
	t.Helper()
	pid := g.pid
	mem := must.Get(live.OpenProcess(pid))(t)
	defer mem.Close()
	maps := must.Get(live.NewGuest(pid).Maps())(t)
	table := live.NewLoader(pid).Table(maps)
	for i := range table.Len() {
		m := table.At(i)
		if m.ELF == nil || !contract.Holds(m.ELF) {
			continue
		}
		tables, err := contract.Open(mem, m.ELF, m.Bias)
		if err != nil {
			return // the runtime is not set up yet
		}
		for k := range maps {
			if reserved := maps[k].End-maps[k].Start >= 1<<30; maps[k].Exec &&
				maps[k].Path != m.Path && !reserved {
				c.mapping(t, tables, mem, &maps[k])
			}
		}
	}
}

// mapping runs the methods in a mapping.
func (c *codes) mapping(t *testing.T, tables *contract.Tables, mem *live.Process, m *live.Mapping) {
	const caller = 0x1234
	// bytes: methods are aligned; if a page has no code at some place, it has none in its rest
	const step, chunk = 16, 4096
	steps := managed.New(tables)
	for ip := m.Start; ip < m.End; {
		var fn contract.Method
		switch reason := tables.Find(ip, &fn); {
		case reason == contract.NotCode, reason == contract.Unreadable:
			ip = ip&^(chunk-1) + chunk
			continue
		case reason != contract.Found, fn.Kind != contract.JIT:
			ip += step
			continue
		}
		ip = max(fn.End, ip+4)
		code := make([]byte, fn.End-fn.Begin)
		if !mem.ReadAt(code, fn.Begin) {
			continue
		}
		c.functions++
		got, err := armrun.Frames(code, fn.Begin, caller,
			func(r *armrun.Machine, _ uint64) (armrun.Registers, error) { return undone(steps, r) })
		expect.Equal(t, err, nil, "%#x, function %d of its method: % x", fn.Begin, fn.Funclet, code)
		if got.Epilogs == 0 {
			c.skipped++
		}
		if got.Entered != 0 {
			c.shifted++
		}
		c.prolog, c.epilog, c.epilogs = c.prolog+got.Prolog, c.epilog+got.Epilog, c.epilogs+got.Epilogs
	}
}

// undone undoes a method's frame where the machine is interrupted in it.
func undone(steps *managed.Tables, m *armrun.Machine) (to armrun.Registers, err error) {
	r := context.Registers{Arch: context.ArchARM64}
	g := &r.ARM64
	g.X, g.Sp, g.PC, g.Known = m.X, m.SP, m.PC, 1<<31-1|0xff<<32
	copy(g.D[:], m.D[8:])
	s, f := unwind.Interrupted(&r), unwind.Frame{}
	if stop := steps.Step(&s, memory.New(memory.Run{Addr: m.Base, Data: m.Stack}), &unwind.Bounds{},
		&f); stop != unwind.StopNone {
		return to, errors.New(stop.String())
	}
	to.X, to.SP, to.PC = g.X, g.Sp, g.PC
	copy(to.D[8:], g.D[:])
	return to, nil
}

// A core of the CLR of ARM64 is walked here and gives the stacks that the sampler saw. Linux cannot write
// such a core of a program under qemu, so the test does: the threads as the probe copied them, the rest as it
// is in the stopped process.
func TestARM64Core(t *testing.T) {
	g := startGuest(t, append(emulator(false), need(t, "out", "samples", "arm64", "Truth"), "240")...)
	fd, conn := g.probe(t)
	file := filepath.Join(tempdir.New(t), "raw")
	e, err := outside.New(g.pid, fd,
		sampler.Config{RateHz: 200, Raw: file, NoWall: true}, io.Discard)
	unix.Close(fd)
	conn.Close()
	must.Do(t, err)
	go func() { // seven seconds with all threads of the program
		g.atWork()
		time.Sleep(7 * time.Second)
		e.Stop()
	}()
	why := e.Run()
	g.Process.Signal(syscall.SIGSTOP)
	samples, _ := readRaw(t, file, why)
	const deep = 200 << 10 // the notes below do not contain the end of larger stacks
	last := map[uint64]*raw.Sample{}
	for _, s := range samples {
		if s.Result.Gap == merge.GapNone && len(s.Capture.Below.Data) == 0 &&
			len(s.Capture.Stack.Data) < deep {
			last[s.Capture.Thread.TID] = s
		}
	}
	core := filepath.Join(tempdir.New(t), "core")
	must.Do(t, os.WriteFile(core, g.core(t, last), 0o600))
	var got shown
	r := seedwalkJSON(t, &got, "stack", "--core", core)
	must.True(t, r.code == 0 && got.Runtime && len(got.Threads) == len(last) && len(last) >= 5,
		"exit code %d, %d threads of %d, %v\n%s", r.code, len(got.Threads), len(last), got.Problems, r.stderr)
	arm := run(t, 4*time.Minute, nil, append(armTool(t), "stack", "--core", core, "--json")...)
	expect.True(t, arm.stdout == r.stdout && arm.code == r.code,
		"the tool of ARM64 shows another core: exit code %d\n%s%s", arm.code, arm.stderr, arm.stdout)
	whole, managed := 0, 0
	for i := range got.Threads {
		n, ok := got.Threads[i].sampled(t, last[got.Threads[i].TID])
		if managed += n; ok {
			whole++
		}
	}
	// In one stack a return address may have been replaced.
	expect.Figures(t, whole >= len(last)-1 && managed >= 5*whole,
		"%d of %d stacks whole, %d managed frames, %v", whole, len(last), managed, got.Problems)
}

// sampled compares a stack of a core with a sample's, if it is whole.
func (c *shownThread) sampled(t *testing.T, s *raw.Sample) (managed int, whole bool) {
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
	mem := must.Get(live.OpenProcess(g.pid))(t)
	defer mem.Close()
	images := live.NewGuest(g.pid)
	maps := must.Get(images.Maps())(t)
	const aarch64, readable, executable = 183, 4, 1
	c := elfasm.Core{Machine: aarch64}
	for tid, s := range threads {
		r := &s.Capture.Regs.ARM64
		c.Thread(uint32(tid), 0, append(r.X[:len(r.X):len(r.X)], r.Sp, r.PC)...)
	}
	c.Process(uint32(g.pid), "Truth")
	var files []elfasm.CoreFile
	for i := range maps {
		m := &maps[i]
		if named := strings.HasPrefix(m.Path, "/"); m.End-m.Start >= 1<<30 ||
			named && !strings.HasPrefix(m.Path, "/memfd:") && !images.Has(m.Path) {
			continue
		} else if named {
			files = append(files, elfasm.CoreFile{Start: m.Start, End: m.End,
				Offset: m.Offset / 4096, Path: m.Path})
		}
		p := elfasm.CorePart{Flags: readable, Addr: m.Start, Size: m.End - m.Start,
			Data: memoryOf(mem, m, threads)}
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
