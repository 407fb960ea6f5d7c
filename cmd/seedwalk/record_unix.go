//go:build unix

package main

import (
	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/symbol"
)

// newNamer returns what names native functions, with folders of symbol files.
func newNamer(symbols symbolList) record.Namer {
	r := symbol.NewResolver()
	r.Folders = symbol.Folders(symbols)
	return r
}

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }
