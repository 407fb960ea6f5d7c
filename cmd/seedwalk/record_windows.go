package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/record"
)

const profilerName = "seedwalk_profiler.dll"

func newNamer() record.Namer { return record.NewPENamer() }

func checkSystem(*patient) finding {
	v := windows.RtlGetVersion()
	detail := fmt.Sprintf("Windows %d.%d.%d, %s, %d CPUs; no special rights are needed", v.MajorVersion, v.MinorVersion, v.BuildNumber, runtime.GOARCH, runtime.NumCPU())
	if runtime.GOARCH != "amd64" {
		return finding{"system", bad, detail, "there is a profiler for x86-64 only"}
	}
	return finding{"system", good, detail, ""}
}
