package arm64

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/module"
)

// TestRuntimeResolve: glibc's _dl_runtime_resolve leaves out what PLT0 pushed at
// each of its instructions, the first one too, where its row does not show it.
func TestRuntimeResolve(t *testing.T) {
	const path = "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"
	f, err := elf.Open(path)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no " + path)
	}
	m := module.ELFFromFile(1, f, path, 0, 1<<30, 0)
	u := New()
	u.SetTable(module.NewTable(1, []module.Module{m}, nil))
	var machine cfi.Machine
	var row cfi.Row
	found := 0
	m.CFI.Each(func(fde cfi.FDE) bool {
		if machine.Row(m.CFI, fde.Lo+4, &row) != cfi.None || row.Regs[regLR].Kind != cfi.Offset || row.Regs[regLR].Off != 8 {
			return true
		}
		found++
		for at := fde.Lo; at < fde.Lo+16; at += 4 {
			if r := u.resolveCFI(&m, 0, at); r.kind != RuleSlots || r.saved&flagShift == 0 {
				t.Errorf("%#x: rule %v, shifted %v", at, r.kind, r.saved&flagShift != 0)
			}
		}
		return true
	})
	if found == 0 {
		t.Skip("SKIPPED-CHECK: " + path + " has no such function")
	}
}
