package buf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
)

// zdebug makes the contents of a .zdebug section, as GNU as compressed them before
// SHF_COMPRESSED.
func zdebug(size uint64, data []byte) []byte {
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
	whole := zdebug(n, data)
	for _, c := range []struct {
		name  string
		raw   []byte
		limit uint64
		ok    bool
	}{
		{"whole", whole, n, true},
		{"above the limit", whole, n - 1, false},
		{"shorter than stated", zdebug(n+1, data), 1 << 20, false},
		{"longer than stated", zdebug(n-1, data), 1 << 20, false},
		{"a size that nobody has", zdebug(1<<60, data), 1 << 30, false},
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

func TestCheckExpansion(t *testing.T) {
	for _, c := range []struct {
		name        string
		n           int
		size, limit uint64
		ok          bool
	}{
		{"small, of any ratio", 20, freeSize, 1 << 30, true},
		{"small, above the limit", 20, 100, 99, false},
		{"at the ratio", 10_000, MaxRatio * 10_000, 1 << 30, true},
		{"above the ratio", 10_000, MaxRatio * 10_001, 1 << 30, false},
		{"at the limit", 1 << 20, 1 << 21, 1 << 21, true},
		{"above the limit", 1 << 20, 1<<21 + 1, 1 << 21, false},
		{"every bit", 1 << 20, 1<<64 - 1, 1<<64 - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckExpansion(c.n, c.size, c.limit); (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		})
	}
}

// TestExpandZlibMemory counts what an expansion allocates: what it expands to,
// and a decoder.
func TestExpandZlibMemory(t *testing.T) {
	data := bytes.Repeat([]byte("frames of functions that are alike, "), 1<<16)
	rand.New(rand.NewPCG(1, 2)).Shuffle(1<<18, func(i, j int) { data[i], data[j] = data[j], data[i] })
	raw := zdebug(uint64(len(data)), data)[12:]
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.ReadMemStats(&before)
	out, err := ExpandZlib(raw, uint64(len(data)), 1<<30)
	runtime.ReadMemStats(&after)
	if err != nil || !bytes.Equal(out, data) {
		t.Fatal(len(out), err)
	}
	if got := int(after.TotalAlloc - before.TotalAlloc); got > len(data)+1<<17 {
		t.Errorf("%d bytes were allocated for %d", got, len(data))
	}
}
