package amd64

import (
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"

	"github.com/seedwalk/seedwalk/testkit/snap"
)

// DWARF register numbers are Delve's.
func TestDWARFNumbers(t *testing.T) {
	for d, n := range fromDWARF {
		if got, want := snap.AMD64Names[n], strings.ToLower(regnum.AMD64ToName(uint64(d))); got != want {
			t.Errorf("%d: %s, Delve says %s", d, got, want)
		}
	}
	for got, want := range map[int]int{dwarfRBX: regnum.AMD64_Rbx, dwarfRBP: regnum.AMD64_Rbp, dwarfRSP: regnum.AMD64_Rsp, dwarfR12: regnum.AMD64_R12, dwarfRA: regnum.AMD64_Rip} {
		if got != want {
			t.Errorf("%d, Delve says %d", got, want)
		}
	}
}
