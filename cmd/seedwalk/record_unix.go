//go:build unix

package main

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }
