//go:build !linux

package symbol

// openPerfMap opens nothing: perf maps are Linux's.
func openPerfMap(int) openFile { return nil }
