//go:build torture && windows

package main

/*
// The hooks of torture.h are compiled in: a profiler for the tests alone.
#cgo CFLAGS: -DSW_TORTURE
*/
import "C"
