package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"

	"github.com/seedwalk/seedwalk/context"
)

// Registers are called what Delve calls those of the same DWARF number.
func TestRegNames(t *testing.T) {
	theirs := strings.NewReplacer("rip", "ra", "v", "d") // the return address's column; the half that is kept
	for _, c := range []struct {
		arch context.Arch
		name func(uint64) string
		lo   uint16
		hi   uint16
	}{
		{context.ArchAMD64, regnum.AMD64ToName, 0, 32},
		{context.ArchARM64, regnum.ARM64ToName, 0, 31},
		{context.ArchARM64, regnum.ARM64ToName, 64, 95},
	} {
		for n := c.lo; n <= c.hi; n++ {
			want := theirs.Replace(strings.ToLower(c.name(uint64(n))))
			if got := RegName(c.arch, n); got != want {
				t.Errorf("%s %d: %q, Delve says %q", fmt.Sprint(c.arch), n, got, want)
			}
		}
	}
}
