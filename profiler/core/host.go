// Package core is the Go half of the profiler inside a CLR process: the loop
// of one sampler thread that samples, unwinds, merges, names and sends.
//
// Strategy. Everything that touches the process stands behind Host, so that
// the loop runs the same against a simulated process. Between the rounds of
// snapshot.Sampler nothing is suspended, and only there does this package
// allocate, read files and write to the tool.
package core

import "github.com/seedwalk/seedwalk/clr"

// Thread is a managed thread with its name.
type Thread struct {
	clr.Thread
	Name string
}

// EventKind tells what application threads reported since the last look.
type EventKind uint8

const (
	EventJIT          EventKind = 1 + iota // a method was compiled
	EventModuleLoad                        // an assembly's module was loaded
	EventModuleUnload                      // one is about to go: its FunctionIDs die
	EventLost                              // the ring overflowed: anything may have happened
)

// Host is the process the agent runs in. One thread calls it.
type Host interface {
	clr.Runtime
	// Threads appends the live managed threads to buf.
	Threads(buf []Thread) []Thread
	// Event returns the oldest event not yet seen.
	Event() (EventKind, bool)
	// LoaderChanges grows whenever a shared object comes or goes.
	LoaderChanges() uint64
	// ThreadCPU is the processor time of a kernel thread, nanoseconds.
	ThreadCPU(tid uint64) uint64
	// Prime makes one walk while nothing is suspended.
	Prime(id clr.ThreadID)
	// FunctionName gives a method's metadata name and its module's file.
	FunctionName(f clr.FunctionID) (name, module string, ok bool)
	// Pin keeps FunctionIDs alive until Unpin (or a time limit).
	Pin()
	Unpin()
	// Stopping reports that the process is shutting the profiler down.
	Stopping() bool
	// Version is the runtime's name and version, for people.
	Version() string
}
