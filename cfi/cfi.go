// Package cfi reads DWARF call frame information.
package cfi

// Table is the call frame information of one image.
type Table struct{}
