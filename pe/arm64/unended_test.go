package arm64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe/arm64"
)

// Epilogs whose codes run to the end of all codes are real (MSVC's runtime
// library); prologs without an end are not.
func TestUnendedEpilog(t *testing.T) {
	for _, c := range []struct {
		name   string
		record []byte
		offset uint32
		want   arm64.Reason
		where  arm64.Where
		codes  int // bytes
	}{
		{"epilog without end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0}, 16, arm64.OK, arm64.Epilog, 3},
		{"body of the same", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0}, 12, arm64.OK, arm64.Body, 4},
		{"prolog without end", []byte{5, 0, 0, 0x08, 0xe3, 0xe3, 0xe3, 0xe3}, 16, arm64.NoEnd, arm64.Body, 0},
		{"epilog that is the prolog, without end", []byte{5, 0, 0x40, 0x08, 4, 0, 0, 0, 0xe3, 0xe3, 0xe3, 0xe3}, 16, arm64.NoEnd, arm64.Body, 0},
		{"last code cut", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xc8}, 16, arm64.NoEnd, arm64.Epilog, 0},
		{"save_next before the end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xe6}, 16, arm64.NoEnd, arm64.Epilog, 0},
	} {
		info, fault := arm64.DecodeXdata(c.record)
		if !fault.OK() {
			t.Fatal(c.name, fault)
		}
		codes, where, fault := info.At(c.offset)
		if fault.Reason != c.want || where != c.where || len(codes) != c.codes {
			t.Errorf("%s: %v, %s, %d bytes of codes", c.name, fault, where, len(codes))
		}
	}
}
