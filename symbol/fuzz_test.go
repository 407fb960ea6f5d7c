package symbol

import (
	"bytes"
	"testing"
)

// FuzzUnxz: any bytes give an error or at most the limit, and never a panic.
func FuzzUnxz(f *testing.F) {
	var t testing.T
	packed := pack(&t, content(1000))
	f.Add(packed)
	f.Add(packed[:len(packed)/2])
	f.Add(pack(&t, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 16
		if out, err := unxz(in, limit); err == nil && len(out) > limit {
			t.Fatalf("%d bytes", len(out))
		}
	})
}

// FuzzPerfMap: what was read can be found again.
func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("7f00 10 a\n7f08 2 b\nx\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		table, _, err := ReadPerfMap(bytes.NewReader(in))
		if err != nil {
			return
		}
		for i := range table.entries {
			e := &table.entries[i]
			name, off, ok := table.Find(e.start)
			if !ok || off != 0 || name != e.name || e.outer >= int32(i) {
				t.Fatalf("entry %d %+v: %q+%#x %v", i, e, name, off, ok)
			}
		}
	})
}
