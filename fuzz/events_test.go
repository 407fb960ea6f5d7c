package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// FuzzEvents: payloads of the events that a probe copies, which may be cut anywhere.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x10\x11\x12\x13\x14\x15\x16\x17\x20\x21\x22\x23\x24\x25\x26\x27A\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04"), uint32(4))
	f.Add([]byte("E\x00\x00\x00x\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x15\x13\x80\x10\x00"), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, version uint32) {
		for _, pointer := range []int{4, 8} {
			for _, name := range []string{
				first(clrevent.DecodeTick(b, version, pointer)).Name, first(clrevent.DecodeSampled(b, pointer)).Name,
				first(clrevent.DecodeException(b, pointer)).Type, first(clrevent.DecodeException(b, pointer)).Message,
			} {
				if len(name) > 2*len(b) { // three bytes of UTF-8 for two
					t.Fatalf("a name of %d bytes from %d", len(name), len(b))
				}
			}
			if a, ok := clrevent.DecodeSampled(b, pointer); ok && a.Weight == 0 {
				t.Fatalf("%+v stands for nothing", a)
			}
		}
	})
}

func first[T any](v T, _ bool) T { return v }
