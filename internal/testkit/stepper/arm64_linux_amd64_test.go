package stepper

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// call64 is a call under way in an AArch64 program: the registers before it.
type call64 struct {
	regs context.ARM64
	ret  uint64
}

// stepped64 is an AArch64 program while it is stepped.
type stepped64 struct {
	t     *testing.T
	g     *gdb
	f     *elf.File
	u     *arm64.Unwinder
	high  uint64
	calls []call64

	inMain bool // the root is main
	Tally
}

// track follows calls and returns: was is the state before the instruction w.
func (p *stepped64) track(w uint32, was, now *context.ARM64) {
	if nearcall.IsARM64(w) {
		p.calls = append(p.calls, call64{*was, was.PC + 4})
		return
	}
	if w == 0xd61f03c0 { // br x30: longjmp's last
		for n := len(p.calls); n > 0 && p.calls[n-1].regs.Sp <= now.Sp; n-- {
			p.calls = p.calls[:n-1]
		}
		return
	}
	for n := len(p.calls); n > 0 && (p.calls[n-1].regs.Sp < now.Sp || p.calls[n-1].ret == now.PC && p.calls[n-1].regs.Sp == now.Sp); n-- {
		p.calls = p.calls[:n-1]
	}
}

// visit walks at a point.
func (p *stepped64) visit(regs *context.ARM64) error {
	stack, err := p.g.memory(regs.Sp, int(p.high-regs.Sp))
	if err != nil {
		return err
	}
	p.Points++
	all, unknown := context.FromARM64(*regs), false
	mem, b := memory.New(memory.Run{Addr: regs.Sp, Data: stack}), unwind.Bounds{Low: regs.Sp &^ 0xfff, High: p.high, Guess: true}
	at := unwind.Interrupted(&all)
	for i := len(p.calls) - 1; ; i-- {
		var f unwind.Frame
		stop := p.u.Step(&at, mem, &b, &f)
		place := fmt.Sprintf("%#x", f.IP)
		switch {
		case i < 0 && (stop != unwind.StopNone || p.inMain):
			p.Right++ // main's caller is not followed
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
		b, ok := p.f.BytesAt(was.PC, 4)
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
		if p.inMain && now.PC == done && now.Sp+512 == p.high {
			return nil
		}
		p.track(binary.LittleEndian.Uint32(b), &was, &now)
		was = now
	}
	return nil
}

// main runs on to main.
func (p *stepped64) main() error {
	p.calls, p.inMain = nil, true
	for s := range p.f.Symbols(false) {
		if s.Name == "main" {
			return p.g.until(s.Value)
		}
	}
	return fmt.Errorf("no main")
}

// TestStrippedARM64 walks AArch64 programs, in an emulator, without unwind data: by
// the code alone.
func TestStrippedARM64(t *testing.T) {
	for _, b := range []struct {
		name string
		few  bool
		cc   []string
	}{
		{"gcc O2, no frame pointer", true, []string{"aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer"}},
		{"gcc O0", false, []string{"aarch64-linux-gnu-gcc", "-O0"}},
		{"gcc Os, no frame pointer", false, []string{"aarch64-linux-gnu-gcc", "-Os", "-fomit-frame-pointer"}},
		{"gcc O2, PAC", false, []string{"aarch64-linux-gnu-gcc", "-O2", "-mbranch-protection=standard"}},
	} {
		t.Run(b.name, func(t *testing.T) {
			if !b.few && !*all {
				t.Skip("SKIPPED-CHECK: of the stepped programs one build in each kind; all with -all")
			}
			for _, tool := range []string{b.cc[0], "qemu-aarch64"} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skip("SKIPPED-CHECK: no " + tool)
				}
			}
			dir := t.TempDir()
			bin := filepath.Join(dir, "program")
			args := append(b.cc[1:len(b.cc):len(b.cc)], "-static", "-no-pie", "-w", "-DTURNS=1", "-o", bin, "testdata/shapes.c")
			if out, err := exec.Command(b.cc[0], args...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED-CHECK: %v: %v %s", b.cc, err, out)
			}
			stepARM64(t, dir, bin)
		})
	}
}

func stepARM64(t *testing.T, dir, bin string) {
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	g, cmd, err := startQemu(dir, bin)
	if err != nil {
		t.Skip("SKIPPED-CHECK: qemu-aarch64: ", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p := &stepped64{t: t, g: g, f: f, u: arm64.New(), Tally: Tally{Bad: map[string]int{}, Doubts: map[string]int{}, Ends: map[string]int{}}}
	p.u.SetTable(module.NewTable(1, []module.Module{{ID: 1, Start: 0x400000, End: 0x500000, Path: bin, ELF: f}}, nil))
	n := 37
	if *every > 0 {
		n = *every
	}
	if err := p.run(n, 15_000); err != nil { // how it starts
		t.Fatal(err)
	}
	start := p.Points
	if err := p.main(); err != nil {
		t.Fatal(err)
	}
	if err := p.run(n, 60_000); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d points in main", p.Points-start)
	t.Log(p.Tally.String())
	share := float64(p.Right) / float64(max(1, p.Points))
	if p.SureWrong > 0 || p.Points < 500 || share < 0.99 {
		t.Errorf("%.4f right; wrong without doubt:\n%s", share, Worst(p.Bad, 30))
	}
	t.Logf("doubtful and wrong:\n%sends:\n%s", Worst(p.Doubts, 20), Worst(p.Ends, 20))
}
