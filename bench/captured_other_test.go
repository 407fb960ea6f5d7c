//go:build !(linux && amd64)

package bench

import "testing"

func captured(b *testing.B) []input {
	b.Log("SKIPPED-CHECK: stacks are captured on Linux on x86-64 only")
	return nil
}
