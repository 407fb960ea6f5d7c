//go:build unix

package main

import (
	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/symbol"
)

const profilerName = "libseedwalk_profiler.so"

func newNamer() record.Namer { return symbol.NewResolver() }
