//go:build !unix

package elf

// Map is Open where files are not mapped.
func Map(path string) (*File, error) { return Open(path) }
