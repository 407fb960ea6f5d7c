package sampler

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/startup"
)

// Config is what the user asked for.
type Config struct {
	RateHz    float64                  // samples per second and thread, above 0
	Raw       string                   // file for raw samples, "" for none
	NoCPU     bool                     // no samples of processor time
	Clock     Clock                    // "" is ClockAuto
	NoWall    bool                     // none of blocked threads
	WallEvery time.Duration            // least time between samples of a thread that waits; 0: a period
	Version   func(path string) string // of a runtime's file, for people
	Probe     string                   // the probe's library, as the target has it mapped
	Events    uint32                   // of the runtime: probe.WaitEvents and so on
	WaitMin   time.Duration            // shorter waits are counted only
	Copies    bool                     // the program copies its own threads
	Start     *startup.Starting        // samples of a command's start, nil if there are none
	File      Shared                   // Windows: what the process shares, nil if no events are wanted
}

// Shared is a *probe.File.
type Shared interface{ Owner() int }

// HandlersLeft is what Engine.Run returns if no thread of the process has taken the signal
// that puts its handlers back.
const HandlersLeft = "the program's threads have taken no signal: the probe's handlers are still there, and go when it is recorded again"
