package sampler

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/startup"
)

// Config holds the user's options.
type Config struct {
	RateHz    float64                  // samples per second and thread, above 0
	Raw       string                   // file for raw samples, "" for none
	NoCPU     bool                     // no samples of CPU time
	Clock     Clock                    // "" is ClockAuto
	NoWall    bool                     // no samples of blocked threads
	WallEvery time.Duration            // shortest time between samples of a waiting thread; 0: one period
	Version   func(path string) string // returns the displayed version of a runtime's file
	Probe     string                   // path of the probe's library as the target maps it
	Events    uint32                   // of the runtime: probe.WaitEvents and so on
	WaitMin   time.Duration            // shorter waits are only counted
	Client    bool                     // for a client library: copies, and samples that are not scaled
	Async     bool                     // samples have async callers
	Start     *startup.Starting        // samples of a command's start, or nil
	File      Shared                   // Windows: the shared section, nil if no events are wanted
}

// SlowPeriod is a sampling period in nanoseconds. If the period is as long or longer, the engine wakes up
// less often, and may be late for a thread.
const SlowPeriod = 2e7

// Shared is a *probe.File.
type Shared interface{ Owner() int }

// HandlersLeft is the reason that Engine.Run returns if no thread of the process took the signal that
// restores its handlers.
const HandlersLeft = "no thread of the program took the signal that removes the probe's handlers: they stay, without effect, until the next recording of the process ends"
