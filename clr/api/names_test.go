package api

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
)

// TestNamedResults: each HRESULT that package clr names has a row here with the same name. All values are
// tried, so that a new name cannot be forgotten.
func TestNamedResults(t *testing.T) {
	rows := map[uint32]string{}
	for _, r := range Load().Results {
		rows[r.Value] = r.Name
	}
	named := 0
	for _, facility := range []uint32{0x00000000, 0x80000000, 0x80004000, 0x8000ff00, 0x80070000, 0x80131300} {
		for low := range uint32(0x100) {
			h := clr.HRESULT(facility + low)
			if name := h.String(); !strings.HasPrefix(name, "HRESULT ") {
				named++
				if rows[uint32(h)] != name {
					t.Errorf("%#x is %s in package clr, %q in results.txt", uint32(h), name, rows[uint32(h)])
				}
			}
		}
	}
	if named < 15 {
		t.Errorf("only %d names were met", named)
	}
}
