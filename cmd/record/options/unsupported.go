package options

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/seedwalk/seedwalk/process/program"
)

// Unsupported returns why a program cannot be recorded on a system, named as GOOS and GOARCH
// are, and what to do; "" if its file shows no reason.
func Unsupported(f *program.File, goos, goarch string) (why, remedy string) {
	switch {
	case f.Format != program.FormatOf(goos):
		return "", ""
	case f.Managed:
		return "is a program of the .NET Framework, which is not recorded",
			program.Least(goos) + " or later is: start the program with dotnet APP.dll, or by its launcher"
	case f.Bits == 32:
		return fmt.Sprintf("is for %s: 32-bit processes are not recorded", f.Machine),
			"build it for " + wordOf(goarch) + ", or start it with a 64-bit runtime"
	case f.Arch != goarch:
		return fmt.Sprintf("is for %s, this profiler for %s", f.Machine, wordOf(goarch)),
			"both must be for the same machine"
	}
	return "", ""
}

// UnsupportedMachine returns why programs for goarch cannot be recorded on a machine of the
// architecture native ("" = unknown), and what to do; "" if they can. Windows on ARM64 emulates
// x86-64: the system's own code in such a process is ARM64EC, without x86-64 unwind data, and
// a thread's x86-64 registers are synthesized.
func UnsupportedMachine(goarch, native string) (why, remedy string) {
	if native == "" || native == goarch {
		return "", ""
	}
	return fmt.Sprintf("this system emulates %s on an %s machine, and emulated code cannot be sampled",
			wordOf(goarch), wordOf(native)),
		"record on an " + wordOf(goarch) + " machine"
}

// wordOf returns the usual name of an architecture.
func wordOf(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86-64"
	case "arm64":
		return "ARM64"
	}
	return goarch
}

// Unsupported returns in one line why the command's program cannot be recorded, "" if its
// file shows no reason. Processes that it starts may still be recorded.
func (o *Options) Unsupported() string {
	path, err := exec.LookPath(o.Command[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return ""
	}
	f, err := program.Open(path)
	if err != nil {
		return ""
	}
	why, remedy := Unsupported(&f, runtime.GOOS, runtime.GOARCH)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s %s; %s", path, why, remedy)
}
