//go:build !linux || !(amd64 || arm64)

package wholefile

// ReadCutAsZeros does nothing on this system: a missing page ends the process.
func ReadCutAsZeros() {}

// ZeroPages returns 0.
func ZeroPages() uint64 { return 0 }
