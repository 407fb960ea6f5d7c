package amd64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// TestSnapshots compares every recorded stack with the single-stepped truth.
func TestSnapshots(t *testing.T) { judgetest.Snapshots(t, "x86_64") }

// TestPEVectors steps from every point of the PE vectors.
func TestPEVectors(t *testing.T) {
	for _, file := range []string{"amd64-exec", "amd64-native", "amd64-synth",
		"amd64-winetest", "malformed"} {
		t.Run(file, func(t *testing.T) { judgetest.PE(t, file) })
	}
}
