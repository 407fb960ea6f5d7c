package main

import (
	"github.com/seedwalk/seedwalk/record"
)

const profilerName = "seedwalk_profiler.dll"

func newNamer() record.Namer { return record.NewPENamer() }
