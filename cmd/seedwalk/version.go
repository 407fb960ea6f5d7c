package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/seedwalk/seedwalk/wire"
)

// version is set by the build (-ldflags "-X main.version=..."); without it the
// build's own record is used.
var version = ""

func versionText() string {
	v := version
	if v == "" {
		v = builtFrom()
	}
	return fmt.Sprintf("seedwalk %s (stream %d, %s, %s/%s)", v, wire.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// builtFrom is the module's version, or the revision it was built from.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}

func runVersion(args []string) int {
	fmt.Println(versionText())
	return exitOK
}
