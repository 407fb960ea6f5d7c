//go:build unix

package main

import (
	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/symbol"
)

func newNamer() record.Namer { return symbol.NewResolver() }

// platformHelp: help is written for this platform.
func platformHelp(s string) string { return s }
