package fuzz

import (
	"runtime"
	"testing"
)

// perByte bounds the bytes allocated for each byte of the input, freed ones included. Allocation is the
// measure of cost: it does not depend on the machine's speed.
const perByte = 64

// bounded runs fn and fails if it allocates more than start bytes and perByte for each of n bytes of input.
func bounded(t *testing.T, start, n int, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(start+perByte*n); used > most {
		t.Errorf("%d bytes allocated for %d, at most %d are right", used, n, most)
	}
}
