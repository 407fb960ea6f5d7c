package main

import (
	"fmt"
	"runtime"

	"github.com/seedwalk/seedwalk/cmd/record/options"
)

// judgeWindows reports whether a Windows can be recorded on, on any host: its version, what
// this program is for, what the machine itself is (a GOARCH, "" if not known), and the
// version of Wine if that is what runs here.
func judgeWindows(major, minor, build int, goarch, native, wine string) finding {
	const name = "system"
	detail := fmt.Sprintf("Windows %d.%d.%d", major, minor, build)
	if wine != "" {
		detail = fmt.Sprintf("Wine %s, which calls itself %s", wine, detail)
	}
	detail += fmt.Sprintf(", %s, %d CPUs", goarch, runtime.NumCPU())
	switch why, remedy := options.UnfitMachine(goarch, native); {
	case why != "":
		return finding{name, bad, detail + ": " + why, remedy}
	case goarch != "amd64":
		return finding{name, bad, detail, "there is a profiler for x86-64 only"}
	case major < 10 && wine == "": // Wine has what Go needs, whatever it calls itself
		return finding{name, bad, detail + ": the Go runtime in the profiler needs Windows 10 or Windows Server 2016", "record on a later Windows"}
	}
	return finding{name, good, detail + "; no special rights are needed", ""}
}
