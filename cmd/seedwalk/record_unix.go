//go:build unix

package main

import (
	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/symbol"
)

func newNamer() record.Namer { return symbol.NewResolver() }

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }
