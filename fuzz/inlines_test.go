package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
)

// FuzzInlines reads any bytes of a process as a tree of inlined methods: each has a method, and the memory is
// bounded by what was read.
func FuzzInlines(f *testing.F) {
	f.Add([]byte{0x61, 0x70, 0x84, 0xa9, 0xdc, 0x00, 0x7f, 0x00, 0x00, 0x02, 0x90, 0x07, 0x24, 0x06, 0x99, 0x24, 0x3b, 0x90, 0x02, 0x19, 0x90, 0x79, 0xe2, 0x04, 0xe9, 0x24, 0x0b, 0xc0, 0x23}, uint32(47))
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x77}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, native uint32) {
		bounded(t, 1<<14, len(b), func() {
			for _, in := range contract.DecodeInlines(b, native) {
				if in.Method == 0 {
					t.Errorf("%+v", in)
				}
			}
		})
	})
}
