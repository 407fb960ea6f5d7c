package contract

import (
	"os"
	"testing"
	"unsafe"
)

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// This process can read itself, and nothing that is not mapped.
func TestSelf(t *testing.T) {
	s, err := NewSelf()
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Self{"system call": s, "file": {mem: mem}} {
		want := []byte("read me")
		got := make([]byte, len(want))
		if !r.ReadAt(got, addressOf(want)) || string(got) != string(want) {
			t.Errorf("%s: read %q", name, got)
		}
		for _, bad := range []uint64{8, 1 << 47, ^uint64(15)} {
			if r.ReadAt(got, bad) {
				t.Errorf("%s: read at %#x", name, bad)
			}
		}
	}
}
