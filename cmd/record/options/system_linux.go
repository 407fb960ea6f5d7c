package options

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bias describes samples that are taken in a suspension: managed threads stop at the next
// point where they poll.
const Bias = "; samples are biased to safe points"

// suspends describes the snapshot mode.
const suspends = "the runtime is suspended for each sample"

// LibraryName is the file of the library that suspends the runtime (--mode snapshot).
const LibraryName = "libseedwalk_profiler.so"

// NativeMachine returns "": Linux does not report that it emulates another architecture.
func NativeMachine() string { return "" }

// hasProbe: there is a probe for this system.
const hasProbe = true

// NeedsLibrary: the probe is a library in the target.
const NeedsLibrary = true

// unprovenRuntime returns "": the probe finds out whether the runtime can be sampled from outside.
func (o *Options) unprovenRuntime() string { return "" }

// noEvents returns "": the runtime's events can be recorded.
func (o *Options) noEvents() string { return "" }

func (o *Options) share() error { return nil }

// minFiles is the limit of open files below which the tool can follow only few threads. It keeps about seven
// files open for each thread on two processors.
const minFiles = 128

// FewFiles returns a refusal if this process may open too few files. Go has already raised the soft
// limit.
func FewFiles() *Refusal {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= minFiles {
		return nil
	}
	return Refuse("ulimit -n",
		fmt.Sprintf("seedwalk may open %d files, and needs %d", limit.Cur, minFiles),
		"raise the limit, and lower it for the program only: seedwalk record -- sh -c 'ulimit -n 32; exec COMMAND'")
}
