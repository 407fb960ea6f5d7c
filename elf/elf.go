// Package elf reads ELF images.
package elf

// File is a parsed ELF image.
type File struct{}
