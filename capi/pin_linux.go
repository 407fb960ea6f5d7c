//go:build seedwalk_archive

package main

// #cgo CFLAGS: -DSW_ARCHIVE
import "C"
