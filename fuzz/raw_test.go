package fuzz

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/stack/raw"
)

// FuzzRaw reads any bytes as a file of raw samples: an error or the end, and no
// more samples than bytes.
func FuzzRaw(f *testing.F) {
	empty := filepath.Join(f.TempDir(), "raw")
	w, err := raw.Create(empty)
	if err != nil {
		f.Fatal(err)
	}
	w.Close()
	head, err := os.ReadFile(empty)
	if err != nil {
		f.Fatal(err)
	}
	for _, record := range []string{"S\x08\x00\x00\x00aaaaaaaa", "T\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add(append(head[:len(head):len(head)], record...))
	}
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
