//go:build unix

package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/symbol"
)

const profilerName = "libseedwalk_profiler.so"

func newNamer() record.Namer { return symbol.NewResolver() }

func checkSystem(*patient) finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return finding{"system", bad, err.Error(), ""}
	}
	detail := fmt.Sprintf("Linux %s, %s, %d CPUs; no special rights are needed", unix.ByteSliceToString(u.Release[:]), runtime.GOARCH, runtime.NumCPU())
	if _, ok := machines[runtime.GOARCH]; !ok {
		return finding{"system", bad, detail, "there is a profiler for x86-64 and AArch64 only"}
	}
	return finding{"system", good, detail, ""}
}
