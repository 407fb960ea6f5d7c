//go:build !linux

package main

// clock is not known here, where no program is measured either.
func clock(int) float64 { return 0 }
