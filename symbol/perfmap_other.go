//go:build !linux

package symbol

// openPerfMap returns nil: perf maps exist on Linux only.
func openPerfMap(int) openFile { return nil }
