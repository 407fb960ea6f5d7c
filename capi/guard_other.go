//go:build !windows

package main

// restore does nothing: on Linux what must be put back are signal actions, before
// others are set, which only the process that loads the library can do.
func restore() {}
