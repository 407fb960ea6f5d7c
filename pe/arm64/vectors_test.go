package arm64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// Every field and code of real records is what its source prints, and packed
// words are what llvm-readobj prints of them.
func TestDecodeVectors(t *testing.T) {
	for _, file := range []string{"arm64-decode", "arm64-llvmtest"} {
		t.Run(file, func(t *testing.T) { judgetest.PE(t, file) })
	}
}
