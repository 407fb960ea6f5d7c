package options

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bias is what samples taken in a suspension suffer from: managed threads stop
// where they poll, not where they were.
const Bias = "; samples are biased to safe points"

// suspends is what the snapshot mode does.
const suspends = "the runtime is suspended for each sample"

// LibraryName is the file of the library that suspends the runtime (--mode snapshot).
const LibraryName = "libseedwalk_profiler.so"

// NativeMachine is the machine's own architecture, named as GOARCH is, where a system
// runs programs for others; "" = not known, and nothing is refused.
func NativeMachine() string { return "" }

// hasProbe: there is a probe for this system.
const hasProbe = true

// NeedsLibrary: the probe is a library in the target.
const NeedsLibrary = true

// unprovenRuntime reports why the way from outside is not tried, "" if it is: the probe
// finds out what the runtime is.
func (o *Options) unprovenRuntime() string { return "" }

// noEvents reports why the runtime's events cannot be recorded, "" if they can.
func (o *Options) noEvents() string { return "" }

func (o *Options) share() error { return nil }

// minFiles is the limit of open files below which the tool can follow only few threads. It keeps about seven
// files open for each thread on two processors.
const minFiles = 128

// FewFiles refuses to record if this process may open too few files. Go has raised the soft limit already.
func FewFiles() *Refusal {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= minFiles {
		return nil
	}
	return &Refusal{What: fmt.Sprintf("seedwalk may open %d files, and needs %d", limit.Cur, minFiles), Where: "ulimit -n",
		Remedy: "raise the limit, and lower it for the program only: seedwalk record -- sh -c 'ulimit -n 32; exec COMMAND'", Code: ExitRefused}
}
