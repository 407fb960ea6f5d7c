package buf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"
)

func gnuz(size uint64, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("ZLIB")
	binary.Write(&b, binary.BigEndian, size)
	z := zlib.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestExpandGNU(t *testing.T) {
	data := bytes.Repeat([]byte("frame "), 50)
	n := uint64(len(data))
	whole := gnuz(n, data)
	for _, c := range []struct {
		name  string
		raw   []byte
		limit uint64
		ok    bool
	}{
		{"whole", whole, n, true},
		{"above the limit", whole, n - 1, false},
		{"shorter than stated", gnuz(n+1, data), 1 << 20, false},
		{"longer than stated", gnuz(n-1, data), 1 << 20, false},
		{"a size that nobody has", gnuz(1<<60, data), 1 << 30, false},
		{"cut", whole[:len(whole)-5], n, false},
		{"no head", whole[:11], n, false},
		{"other head", append([]byte("ZLIC"), whole[4:]...), n, false},
		{"no stream", whole[:12], n, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ExpandGNU(c.raw, c.limit)
			if (err == nil) != c.ok || c.ok && !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}
