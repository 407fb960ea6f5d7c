package module

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

func TestSameModules(t *testing.T) {
	base := Module{ID: 1, Start: 0x1000, End: 0x2000, Bias: 0x800, ELF: new(elf.File), CFI: new(cfi.Table), PE: new(pe.File)}
	other := Module{ID: 2, Start: 0x3000, End: 0x4000}
	was := NewTable(1, []Module{base, other}, nil)
	for _, c := range []struct {
		name   string
		change func(m *Module)
		same   bool
	}{
		{"nothing", func(*Module) {}, true},
		{"ID", func(m *Module) { m.ID++ }, false},
		{"start", func(m *Module) { m.Start++ }, false},
		{"end", func(m *Module) { m.End++ }, false},
		{"bias", func(m *Module) { m.Bias++ }, false},
		{"ELF image read again", func(m *Module) { m.ELF = new(elf.File) }, false},
		{"PE image read again", func(m *Module) { m.PE = new(pe.File) }, false},
		{"unwind data read again", func(m *Module) { m.CFI = new(cfi.Table) }, false},
		{"frame pointers", func(m *Module) { m.FramePointers = true }, false},
		{"another format", func(m *Module) { m.Image = noImage{} }, false},
	} {
		m := base
		c.change(&m)
		now := NewTable(2, []Module{other, m}, []memory.Range{{Start: 1, End: 2}})
		if was.SameModules(now) != c.same || now.SameModules(was) != c.same {
			t.Errorf("%s: same must be %v", c.name, c.same)
		}
	}
	if was.SameModules(NewTable(2, []Module{base}, nil)) {
		t.Error("a module fewer is the same")
	}
}

// Foreign JIT ranges are in the table that was made with them, and no other.
func TestWithJIT(t *testing.T) {
	was := NewTable(7, nil, []memory.Range{{Start: 0x100, End: 0x200}})
	ranges := []memory.Range{{Start: 0x3000, End: 0x4000}, {Start: 0x1000, End: 0x2000}}
	now := was.WithJIT(ranges)
	ranges[0] = memory.Range{Start: 1, End: 1 << 62} // the table has a copy
	for addr, want := range map[uint64]bool{0xfff: false, 0x1000: true, 0x1fff: true, 0x2000: false, 0x3000: true, 0x4000: false, 0x150: false} {
		if now.IsJIT(addr) != want || was.IsJIT(addr) {
			t.Errorf("%#x: %v, want %v", addr, now.IsJIT(addr), want)
		}
	}
	if now.Generation() != 7 || !now.IsManaged(0x150) {
		t.Error("the rest of the table changed")
	}
}
