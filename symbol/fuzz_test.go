package symbol

import "testing"

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

// FuzzTable: of any symbols, overlapping ones too, what the table holds can be
// found again.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 16, 8, 2, 8, 2, 3, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		var symbols []Symbol
		for i := 0; i+1 < len(in); i += 2 {
			symbols = append(symbols, Symbol{Name: string(rune('a' + i)), Addr: 0x7f00 + uint64(in[i]), Size: uint64(in[i+1])})
		}
		table := NewTable(symbols, nil)
		for i := range table.entries {
			e := &table.entries[i]
			name, off, ok := table.Find(e.start)
			if !ok || off != 0 || name != e.name || e.outer >= int32(i) {
				t.Fatalf("entry %d %+v: %q+%#x %v", i, e, name, off, ok)
			}
		}
	})
}
