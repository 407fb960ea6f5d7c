package arm64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// TestSnapshots compares every recorded stack with the single-stepped truth.
func TestSnapshots(t *testing.T) { judgetest.Snapshots(t, "aarch64") }

// TestPEVectors steps from every point of the PE vectors.
func TestPEVectors(t *testing.T) {
	for _, file := range []string{"arm64-exec", "arm64-native", "arm64-synth", "arm64-packedx",
		"arm64-winetest", "malformed"} {
		t.Run(file, func(t *testing.T) { judgetest.PE(t, file) })
	}
}
