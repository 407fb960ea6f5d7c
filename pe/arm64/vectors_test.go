package arm64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// TestDecodeVectors compares every field and code of real records with the source's own output, and packed
// words with llvm-readobj's.
func TestDecodeVectors(t *testing.T) {
	for _, file := range []string{"arm64-decode", "arm64-llvmtest"} {
		t.Run(file, func(t *testing.T) { judgetest.PE(t, file) })
	}
}
