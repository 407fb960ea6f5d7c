package image_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/sim/image"
)

// TestRAState: the rows the reader makes say that the return address is signed
// where it is; a walker on Linux strips every address and would not notice.
func TestRAState(t *testing.T) {
	w := newARM64(t, image.ELF, 9, 300)
	m := moduleOf(t, w.im)
	var c cfi.Machine
	var row cfi.Row
	signed := 0
	for _, fn := range w.fns {
		if fn.NoInfo {
			continue
		}
		rows := fn.Rows(image.ARM64)
		for i := range rows {
			if why := c.Row(m.CFI, uint64(fn.RVA+fn.Ops[i].Off), &row); why != cfi.None {
				t.Fatalf("%s, op %d: %v", fn.Name, i, why)
			}
			if row.RASign != rows[i].Signed {
				t.Fatalf("%s, op %d: signed is %v", fn.Name, i, row.RASign)
			}
			if row.RASign {
				signed++
			}
		}
	}
	if signed == 0 {
		t.Error("no return address is signed")
	}
}
