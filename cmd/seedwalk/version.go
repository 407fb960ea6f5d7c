package main

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/wire"
)

// version is set by the build (-ldflags "-X main.version=..."); without it the
// build's own record is used.
var version = ""

const versionHelp = `Usage: seedwalk version [--json]

Prints the versions of seedwalk and of the probe's stream, and what the tool was built with and for.

  --json    as one object: version, stream, go, os, arch

Exit code: 0, 2 wrong usage.
`

// versions describes this program.
type versions struct {
	Version string `json:"version"`
	// of package wire: profilers and tools with the same number understand each other
	Stream int    `json:"stream"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
}

func ownVersions() versions {
	v := versions{version, wire.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if v.Version == "" {
		v.Version = builtFrom()
	}
	return v
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
	set := flag.NewFlagSet("version", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	if code, done := cli.Parse(set, versionHelp, args); done {
		return code
	}
	if set.NArg() > 0 {
		return cli.Usage("version", fmt.Sprintf("unexpected argument %q", set.Arg(0)))
	}
	v := ownVersions()
	if *asJSON {
		return cli.PrintJSON("version", v, "")
	}
	fmt.Fprintf(cli.Stdout, "seedwalk %s (stream %d, %s, %s/%s)\n", v.Version, v.Stream, v.Go, v.OS, v.Arch)
	return cli.ExitOK
}
