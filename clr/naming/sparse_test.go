package naming

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe"
)

// zeros is memory filled with zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ uint64) bool { clear(p); return true }

// Sections that wrap or exceed the largest image are refused before memory is allocated for them.
func TestSparseBounds(t *testing.T) {
	n := &Images{r: zeros{}}
	for name, c := range map[string]struct {
		sections []pe.Section
		size     int // -1: refused
	}{
		"none":        {nil, 0},
		"two":         {[]pe.Section{{RVA: 0x2000, VirtualSize: 0x100}, {RVA: 0x1000, VirtualSize: 0x80}}, 0x2100},
		"wraps":       {[]pe.Section{{RVA: 0x1000, VirtualSize: 0x100}, {RVA: 0xffffff00, VirtualSize: 0x200}}, -1},
		"too large":   {[]pe.Section{{RVA: 0x1000, VirtualSize: maxImage}}, -1},
		"just fits":   {[]pe.Section{{RVA: maxImage - 16, VirtualSize: 16}}, maxImage},
		"empty, high": {[]pe.Section{{RVA: 0xffffffff}}, -1},
	} {
		if img := n.sparse(0, c.sections); c.size < 0 && img != nil || c.size >= 0 && len(img) != c.size {
			t.Errorf("%s: %d bytes, want %d", name, len(img), c.size)
		}
	}
}
