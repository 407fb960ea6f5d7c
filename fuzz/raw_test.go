package fuzz

import (
	"bytes"
	"testing"

	"github.com/seedwalk/seedwalk/internal/raw"
)

// FuzzRaw reads any bytes as a file of raw samples: an error or the end, and no
// more samples than bytes.
func FuzzRaw(f *testing.F) {
	f.Add([]byte("SWRAW004S\x08\x00\x00\x00aaaaaaaa"))
	f.Add([]byte("SWRAW004T\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := raw.NewReader(bytes.NewReader(b))
		for n := 0; err == nil; n++ {
			if n > len(b) {
				t.Fatalf("%d samples in %d bytes", n, len(b))
			}
			_, err = r.Next()
		}
	})
}
