// Command release writes the parts of a release that need no packager: the SBOM of a tool, its
// manual pages, an OCI image, and NuGet packages. They depend only on their input, so equal input
// gives equal bytes.
//
//	release sbom -version V FILE            CycloneDX JSON on standard output
//	release man -version V -o FOLDER TOOL   one page for each command
//	release oci -version V -time SECONDS -o FILE.tar ARCH=FILE...
//	release nuget -version V -time SECONDS -o FOLDER RID=FILE...
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name sbom, man, oci, or nuget")
	}
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := set.String("version", "", "version of the release")
	seconds := set.Int64("time", 0, "time of the files, in seconds since 1970")
	target := set.String("o", "", "file or folder to write")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "sbom" && set.NArg() == 1:
		return writeSBOM(os.Stdout, set.Arg(0), *version)
	case args[0] == "man" && set.NArg() == 1 && *target != "":
		return writeManPages(set.Arg(0), *version, *target)
	case (args[0] == "oci" || args[0] == "nuget") && set.NArg() > 0 && *target != "":
		var tools []tool
		for _, arg := range set.Args() {
			arch, file, ok := strings.Cut(arg, "=")
			if !ok {
				return fmt.Errorf("%q is not ARCH=FILE", arg)
			}
			tools = append(tools, tool{arch, file})
		}
		if args[0] == "nuget" {
			return writeNuGet(tools, *version, *target, time.Unix(*seconds, 0).UTC())
		}
		f, err := os.Create(*target)
		if err != nil {
			return err
		}
		return errors.Join(writeOCI(f, tools, *version, time.Unix(*seconds, 0).UTC()), f.Close())
	}
	return errors.New("wrong usage: release sbom -version V FILE, release man -version V -o FOLDER TOOL, " +
		"or release oci or nuget with -version V -time SECONDS -o FILE, or FOLDER, and ARCH=FILE for each tool")
}
