package module

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe"
)

// foreign is a format that is unknown everywhere else.
type foreign struct{}

func (foreign) Bytes(at uint64, n int) []byte { return []byte{byte(at)} }
func (foreign) CFIBase() uint64               { return 0x100 }
func (foreign) Starts(at uint64) bool         { return at == 0x20 }
func (foreign) Entry() (uint64, bool)         { return 0x30, true }
func (foreign) SystemV() bool                 { return true }

// A module asks its image, of any format; a module without an image has no answers.
func TestImage(t *testing.T) {
	m := Module{Bias: 0x1000, Image: foreign{}}
	if b := m.Bytes(0x1042, 8); len(b) != 1 || b[0] != 0x42 {
		t.Errorf("bytes %v", b)
	}
	if at, ok := m.Entry(); !ok || at != 0x1030 || m.CFIBias() != 0xf00 || !m.SystemV() || !m.Starts(0x1020) || m.Starts(0x1021) {
		t.Errorf("entry %#x %v, CFI at %#x", at, ok, m.CFIBias())
	}
	none := Module{Bias: 0x1000}
	if _, ok := none.Entry(); ok || none.Bytes(0x1000, 8) != nil || none.CFIBias() != 0x1000 || none.SystemV() || none.Starts(0x1000) {
		t.Error("a module without an image answers")
	}
}

// A PE image's answers about its functions and bytes.
func TestPEImage(t *testing.T) {
	entry := []byte{0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0}
	f := pe.FromBlocks(pe.MachineAMD64, entry, []pe.Block{{RVA: 0x1000, Data: []byte{1, 2, 3}}, {RVA: 0x3000, Data: []byte{1, 0, 0, 0}}})
	m := Module{Bias: 0x7000_0000, PE: f}
	if b := m.Bytes(0x7000_1001, 8); len(b) != 2 || b[0] != 2 {
		t.Errorf("bytes %v", b)
	}
	for addr, want := range map[uint64]bool{0x7000_1000: true, 0x7000_1001: false, 0x8_7000_1000: false, 0x1000: false} {
		if m.Starts(addr) != want {
			t.Errorf("%#x: starts %v", addr, !want)
		}
	}
	if m.SystemV() || m.Bytes(0x8_7000_1000, 8) != nil {
		t.Error("a PE image of more than 4 GiB, or of System V")
	}
	if n := testing.AllocsPerRun(10, func() { m.Bytes(0x7000_1000, 2); m.Starts(0x7000_1000); m.CFIBias() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
