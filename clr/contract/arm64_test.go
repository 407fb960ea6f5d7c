package contract

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
)

// Only the unwind data of an ARM64 function contain its length.
func TestFunctionARM64(t *testing.T) {
	const at = 0x40
	for _, c := range []struct {
		name  string
		spoil func(f *fake)
		rel   uint64
		want  Reason
		end   uint64
	}{
		{"by its record", func(*fake) {}, at + 0x5c, Found, at + 0x60},
		{"behind it", func(*fake) {}, at + 0x60, NoMethod, 0},
		{"by a packed word", func(f *fake) { f.u32(atHeader+40, 0x10<<2|1) }, at + 0x3c, Found, at + 0x40},
		{"behind that", func(f *fake) { f.u32(atHeader+40, 0x10<<2|1) }, at + 0x40, NoMethod, 0},
		{"the record is not there", func(f *fake) { f.u32(atHeader+40, 0x123450) }, at, Unreadable, 0},
		{"a record of another version", func(f *fake) { f.u32(atInfo, 0x18|1<<18) }, at, Malformed, 0},
		{"no length", func(f *fake) { f.u32(atInfo, 1<<21|1<<27) }, at, Malformed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := worldOf(context.ArchARM64, []body{{rel: at, size: 0x60}}, false)
			c.spoil(f)
			var m Method
			r := f.tables(false).Find(mapBase+c.rel, &m)
			if r != c.want || r == Found && (m.Begin != mapBase+at || m.End != mapBase+c.end) {
				t.Errorf("%v, want %v (%+v)", r, c.want, m)
			}
		})
	}
}
