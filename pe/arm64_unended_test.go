package pe_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe"
)

// Epilogs whose codes run to the end of all codes are real (MSVC's runtime
// library); prologs without an end are not.
func TestARM64UnendedEpilog(t *testing.T) {
	for _, c := range []struct {
		name   string
		record []byte
		offset uint32
		want   pe.ARM64Reason
		where  pe.ARM64Where
		codes  int // bytes
	}{
		{"epilog without end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0}, 16, pe.ARM64OK, pe.ARM64Epilog, 3},
		{"body of the same", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0}, 12, pe.ARM64OK, pe.ARM64Body, 4},
		{"prolog without end", []byte{5, 0, 0, 0x08, 0xe3, 0xe3, 0xe3, 0xe3}, 16, pe.ARM64NoEnd, pe.ARM64Body, 0},
		{"epilog that is the prolog, without end", []byte{5, 0, 0x40, 0x08, 4, 0, 0, 0, 0xe3, 0xe3, 0xe3, 0xe3}, 16, pe.ARM64NoEnd, pe.ARM64Body, 0},
		{"last code cut", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xc8}, 16, pe.ARM64NoEnd, pe.ARM64Epilog, 0},
		{"save_next before the end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xe6}, 16, pe.ARM64NoEnd, pe.ARM64Epilog, 0},
	} {
		info, fault := pe.DecodeARM64Xdata(c.record)
		if !fault.OK() {
			t.Fatal(c.name, fault)
		}
		codes, where, fault := info.At(c.offset)
		if fault.Reason != c.want || where != c.where || len(codes) != c.codes {
			t.Errorf("%s: %v, %s, %d bytes of codes", c.name, fault, where, len(codes))
		}
	}
}
