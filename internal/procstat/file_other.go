//go:build !linux

package procstat

import "os"

// CPUTime returns false: this system has no such clock.
func CPUTime(int) (nanos int64, ok bool) { return 0, false }

// ReadFile is os.ReadFile.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
