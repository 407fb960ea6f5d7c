package stepper

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// call64 is a call under way in an AArch64 program: the registers before it.
type call64 struct {
	regs context.ARM64
	ret  uint64
	part bool // the called function is an outlined part of its caller: it preserves no registers
}

// over reports whether a call has returned. An outlined part of its caller may change SP for it (alloca), so
// only its return address counts.
func (c *call64) over(now *context.ARM64) bool {
	return c.regs.Sp < now.Sp && !c.part || c.ret == now.PC && (c.regs.Sp == now.Sp || c.part)
}

// stepped64 is an AArch64 program while it is stepped.
type stepped64 struct {
	g     *gdb
	code  func(pc uint64) ([]byte, bool) // an instruction of the program's own
	u     *arm64.Unwinder
	guess bool // as unwind.Bounds has it
	high  uint64
	calls []call64

	parts map[uint64]bool // functions that are outlined parts of their callers
	jump  elf.Symbol      // glibc's longjmp: its unwind data describes the frame that it is about to enter

	root bool // the function that it is run from is the root
	Tally
}

func newStepped64(g *gdb, m module.Module, code func(pc uint64) ([]byte, bool)) *stepped64 {
	p := &stepped64{g: g, code: code, u: arm64.New(),
		Tally: Tally{Bad: map[string]int{}, Doubts: map[string]int{}, Ends: map[string]int{}}}
	p.u.SetTable(module.NewTable(1, []module.Module{m}, nil))
	return p
}

// track follows calls and returns: was is the state before the instruction w.
func (p *stepped64) track(w uint32, was, now *context.ARM64) {
	if nearcall.IsARM64(w) {
		p.calls = append(p.calls, call64{*was, was.PC + 4, p.parts[now.PC]})
		return
	}
	if w == 0xd61f03c0 { // br x30: longjmp's last
		for n := len(p.calls); n > 0 && p.calls[n-1].regs.Sp <= now.Sp; n-- {
			p.calls = p.calls[:n-1]
		}
		return
	}
	for n := len(p.calls); n > 0 && p.calls[n-1].over(now); n-- {
		p.calls = p.calls[:n-1]
	}
}

// vectors reads d8 to d15, which takes eight questions, if all builds are stepped.
func (p *stepped64) vectors(r *context.ARM64) error {
	if !*all {
		return nil
	}
	return p.g.vectors(r)
}

// visit walks at a point.
func (p *stepped64) visit(regs *context.ARM64) error {
	if regs.PC-p.jump.Value < p.jump.Size {
		p.Disputed++
		return nil
	}
	stack, err := p.g.memory(regs.Sp, int(p.high-regs.Sp))
	if err != nil {
		return err
	}
	if err := p.vectors(regs); err != nil {
		return err
	}
	p.Points++
	all, unknown := context.FromARM64(*regs), false
	mem, b := memory.New(memory.Run{Addr: regs.Sp, Data: stack}),
		unwind.Bounds{Low: regs.Sp &^ 0xfff, High: p.high, Guess: p.guess}
	at := unwind.Interrupted(&all)
	for i := len(p.calls) - 1; ; i-- {
		var f unwind.Frame
		stop := p.u.Step(&at, mem, &b, &f)
		place := fmt.Sprintf("%#x", f.IP)
		switch {
		case i < 0 && (stop != unwind.StopNone || p.root):
			p.Right++ // the root's caller is not followed
			return nil
		case stop != unwind.StopNone:
			p.Short++
			p.Ends[place+" "+stop.String()]++
			return nil
		}
		what := "a frame above the root"
		if i >= 0 {
			what = differs64(&all.ARM64, &p.calls[i], &unknown)
		}
		if what == "" {
			continue
		}
		if at.Trust.Doubtful() {
			p.Doubtful++
			p.Doubts[place+" "+what+" by "+at.Trust.String()]++
		} else {
			p.SureWrong++
			p.Bad[place+" "+what+" by "+at.Trust.String()]++
		}
		return nil
	}
}

func differs64(got *context.ARM64, want *call64, unknown *bool) string {
	switch {
	case got.PC != want.ret:
		return "pc"
	case want.part:
		return ""
	case got.Sp != want.regs.Sp:
		return "sp"
	}
	for i := 19; i < 30; i++ {
		if got.Known>>i&1 == 0 {
			*unknown = true
		} else if got.X[i] != want.regs.X[i] {
			return fmt.Sprintf("x%d", i)
		}
	}
	for i := range got.D {
		if got.Known>>(32+i)&1 == 0 {
			*unknown = true
		} else if got.D[i] != want.regs.D[i] {
			return fmt.Sprintf("d%d", 8+i)
		}
	}
	return ""
}

// run steps through the program and walks at each n-th instruction of its own.
func (p *stepped64) run(every, most int) error {
	was, err := p.g.registers()
	if err != nil {
		return err
	}
	p.high = was.Sp + 512
	done := was.X[30]
	for n := 0; n < most; n++ {
		b, ok := p.code(was.PC)
		if !ok {
			return fmt.Errorf("%#x is no code of the program's", was.PC)
		}
		if n%every == 0 {
			if err := p.visit(&was); err != nil {
				return err
			}
		}
		if more, err := p.g.step(); !more {
			return err
		}
		now, err := p.g.registers()
		if err != nil {
			return nil // it has ended
		}
		if p.root && now.PC == done && now.Sp+512 == p.high {
			return nil
		}
		w := binary.LittleEndian.Uint32(b)
		if nearcall.IsARM64(w) {
			if err := p.vectors(&was); err != nil { // a call does not change them
				return err
			}
		}
		p.track(w, &was, &now)
		was = now
	}
	return nil
}

// from runs the program up to a function, which is the root of the stack from then on.
func (p *stepped64) from(addr uint64) error {
	p.calls, p.root = nil, true
	return p.g.until(addr)
}

// interval returns how many instructions are between two points.
func interval() int {
	switch {
	case *every > 0:
		return *every
	case *all:
		return 1
	}
	return 37
}

// steps returns how many instructions are between two points of a program, and how many instructions are run
// at most.
func steps(source string, most int) (every, n int) {
	if source == shapes {
		return interval(), most
	}
	o := few("")
	return o.Every, o.Every * o.Max
}

// need skips the test if a tool is missing.
func (b *build) need(t *testing.T, tools ...string) {
	t.Helper()
	needs.Command(t, append(tools, b.cc[0])...)
}

const clang64 = "--target=aarch64-linux-gnu"

var builds64 = []build{
	{"gcc O0", false, []string{"aarch64-linux-gnu-gcc", "-O0"}},
	{"gcc O1", false, []string{"aarch64-linux-gnu-gcc", "-O1"}},
	{"gcc O2", false, []string{"aarch64-linux-gnu-gcc", "-O2"}},
	{"gcc O2, no frame pointer", true, []string{"aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer"}},
	{"gcc O3", false, []string{"aarch64-linux-gnu-gcc", "-O3"}},
	{"gcc Os, no frame pointer", false, []string{"aarch64-linux-gnu-gcc", "-Os", "-fomit-frame-pointer"}},
	{"gcc PAC", true, []string{"aarch64-linux-gnu-gcc", "-O2", "-mbranch-protection=standard"}},
	{"gcc PAC in leaves, no frame pointer", false,
		[]string{"aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer", "-mbranch-protection=pac-ret+leaf"}},
	{"gcc LTO", false, []string{"aarch64-linux-gnu-gcc", "-O2", "-flto"}},
	{"gcc stack clash", false,
		[]string{"aarch64-linux-gnu-gcc", "-O2", "-fstack-clash-protection", "-fomit-frame-pointer"}},
	{"gcc stack protector", false, []string{"aarch64-linux-gnu-gcc", "-O2", "-fstack-protector-all"}},
	{"clang O0", false, []string{clang, clang64, "-O0"}},
	{"clang O2", false, []string{clang, clang64, "-O2"}},
	{"clang O3", false, []string{clang, clang64, "-O3", "-mcpu=neoverse-n1"}},
	{"clang Oz", false, []string{clang, clang64, "-Oz"}}, // prologs and epilogs in functions of their own
	{"clang synchronous", true,
		[]string{clang, clang64, "-O2", "-funwind-tables", "-fno-asynchronous-unwind-tables"}},
	{"clang PAC", false, []string{clang, clang64, "-O2", "-mbranch-protection=standard"}},
	{"clang LTO", false, []string{clang, clang64, "-O2", "-flto", fuseLLD}},
}

// step64 steps a program from its start on, then from main on, and judges the walks.
func (b *build) step64(t *testing.T, source string, least float64, edit func(*module.Module), guess bool) {
	b.need(t, "qemu-aarch64")
	dir := t.TempDir()
	bin := filepath.Join(dir, "program")
	args := append(b.cc[1:len(b.cc):len(b.cc)], "-static", "-no-pie", "-w", "-DTURNS=1", "-o", bin,
		must.Get(filepath.Abs(source))(t))
	cc := exec.Command(b.cc[0], args...)
	cc.Dir = dir // Fortran writes its modules here
	if out, err := cc.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: %v: %v %s", b.cc, err, out)
	}
	f, err := elf.Open(bin)
	must.Do(t, err)
	table, _ := cfi.Load(module.CFISections(f, f.CFISections()))
	g, cmd, err := startQemu(dir, bin)
	if err != nil {
		t.Skip("SKIPPED-CHECK: qemu-aarch64: ", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	m := module.Module{ID: 1, Start: 0x200000, End: 0x800000, Path: bin, ELF: f, CFI: table}
	edit(&m)
	p := newStepped64(g, m, func(pc uint64) ([]byte, bool) { return f.BytesAt(pc, 4) })
	p.guess, p.parts = guess, outlined(f)
	p.jump, _ = symbolOf(f, "__longjmp")
	if err := p.run(interval(), 15_000); err != nil { // how it starts
		t.Fatal(err)
	}
	start := p.Points
	main, ok := symbolOf(f, "main")
	must.True(t, ok, "no main")
	must.Do(t, p.from(main.Value))
	must.Do(t, p.run(steps(source, 60_000)))
	t.Logf("%d points in main", p.Points-start)
	p.judge(t, 500, least)
}

// outlined returns the addresses of the functions that a compiler has made of parts of others.
func outlined(f *elf.File) map[uint64]bool {
	parts := map[uint64]bool{}
	for s := range f.Symbols(false) {
		if strings.HasPrefix(s.Name, outlinedPrefix) {
			parts[s.Value] = true
		}
	}
	return parts
}

func symbolOf(f *elf.File, name string) (elf.Symbol, bool) {
	for s := range f.Symbols(false) {
		if s.Name == name {
			return s, true
		}
	}
	return elf.Symbol{}, false
}

// judge fails the test if a walk was wrong without doubt, or too few were right.
func (p *stepped64) judge(t *testing.T, points int, least float64) {
	note(t, &p.Tally)
	share := float64(p.Right) / float64(max(1, p.Points))
	expect.True(t, p.SureWrong == 0 && p.Points >= points && share >= least,
		"%.4f right; wrong without doubt:\n%s", share, Worst(p.Bad, 30))
	t.Logf("doubtful and wrong:\n%sends:\n%s", Worst(p.Doubts, 20), Worst(p.Ends, 20))
}

// TestShapesARM64 walks at the instructions of AArch64 programs, in an emulator.
func TestShapesARM64(t *testing.T) {
	each(t, builds64, func(t *testing.T, b *build) {
		b.step64(t, shapes, 0.99,
			func(*module.Module) {}, false)
	})
}

// TestStrippedARM64 walks the same without unwind data: by the code alone.
func TestStrippedARM64(t *testing.T) {
	each(t, builds64, func(t *testing.T, b *build) {
		b.step64(t, shapes, 0.99,
			func(m *module.Module) { m.CFI = nil }, true)
	})
}
