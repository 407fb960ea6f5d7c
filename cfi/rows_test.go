package cfi_test

import (
	"strconv"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// vectorOmits names the rules that the vectors leave out although the record
// has them: ld.so's FDE at 0x1c080 says DW_CFA_register x30 in x15 from 0x1c094
// on, which readelf shows and the vector's "r" does not list.
var vectorOmits = map[string]string{"ld0x1c0a3": "30"}

// TestVectorRows compares every row of the vectors, readelf's and libdw's common
// answer; and no row may have a rule that they do not know.
func TestVectorRows(t *testing.T) {
	for _, arch := range []string{"x86_64", "aarch64"} {
		t.Run(arch, func(t *testing.T) {
			judgetest.Rows(t, arch, func(binary, pc string, register int) {
				if vectorOmits[binary+pc] != strconv.Itoa(register) {
					t.Errorf("%s at %s: a rule for r%d is not in the vector", binary, pc, register)
				}
			})
		})
	}
}
