package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// An image without an exception directory: an interrupted ip in it is no leaf
// that anything proves.
func TestPEWithoutExceptionDirectory(t *testing.T) {
	f := pe.FromBlocks(pe.MachineAMD64, nil, []pe.Block{{RVA: 0x1000, Data: []byte{0x90, 0xc3}}})
	m := module.PEFromFile(1, f, "bare.dll", textBias, textBias+0x2000)
	u := unwinder(module.NewTable(1, []module.Module{m}, nil))
	r := start(textBias+0x1000, sp0)
	var frame unwind.Frame
	if _, stop := stepOf(u, &r, true, newStack().window(), nil, &frame); stop != unwind.NoInfo {
		t.Errorf("%v, want no-info", stop)
	}
}
