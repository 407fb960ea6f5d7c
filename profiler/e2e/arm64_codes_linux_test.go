//go:build amd64

package e2e

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/armrun"
	"github.com/seedwalk/seedwalk/testkit/must"
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
		if time.Now().After(end) {
			t.Fatalf("%+v", c)
		}
		time.Sleep(3 * time.Second)
		g.cmd.Process.Signal(syscall.SIGSTOP)
		c = codes{}
		c.all(t, g)
		g.cmd.Process.Signal(syscall.SIGCONT)
	}
	t.Logf("%d functions, %d of them entered in another's frame: %d instructions of prologs, and %d of %d epilogs", c.functions, c.shifted, c.prolog, c.epilog, c.epilogs)
	if c.functions/10 < c.skipped || c.prolog < 3*c.functions || c.epilogs < c.functions/2 {
		t.Errorf("%d functions are not understood: %+v", c.skipped, c)
	}
}

// codes counts functions, and instructions at which a frame was undone.
type codes struct {
	functions, skipped, shifted, prolog, epilog, epilogs int
}

// all runs every method that the guest's runtime has compiled.
func (c *codes) all(t *testing.T, g *guest) {
	t.Helper()
	pid := g.cmd.Process.Pid
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
			if reserved := maps[k].End-maps[k].Start >= 1<<30; maps[k].Exec && maps[k].Path != m.Path && !reserved {
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
		got, err := armrun.Frames(code, fn.Begin, caller, func(r *armrun.Machine, _ uint64) (armrun.Registers, error) { return undone(steps, r) })
		if err != nil {
			t.Errorf("%#x, function %d of its method: %v\n% x", fn.Begin, fn.Funclet, err, code)
		}
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
	if stop := steps.Step(&s, memory.New(memory.Run{Addr: m.Base, Data: m.Stack}), &unwind.Bounds{}, &f); stop != unwind.StopNone {
		return to, errors.New(stop.String())
	}
	to.X, to.SP, to.PC = g.X, g.Sp, g.PC
	copy(to.D[8:], g.D[:])
	return to, nil
}
