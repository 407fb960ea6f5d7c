// Package core is the Go half of the profiler inside a CLR process: the loop
// of one sampler thread that samples, unwinds, merges, names and sends.
//
// Strategy. Everything that touches the process stands behind Host, so that
// the loop runs the same against a simulated process. Between the rounds of
// snapshot.Sampler nothing is suspended, and only there does this package
// allocate, read files and write to the tool. How threads are stopped is a
// strategy: rounds.go suspends the runtime and takes all at once, single.go one
// thread after the other.
package core

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
)

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

// Process is the process the agent runs in, on every platform. One thread calls
// it.
type Process interface {
	// Threads appends the live managed threads to buf.
	Threads(buf []Thread) []Thread
	// Event returns the oldest event not yet seen.
	Event() (EventKind, bool)
	// LoaderChanges grows whenever a shared object comes or goes.
	LoaderChanges() uint64
	// ThreadCPU is the processor time of a kernel thread, nanoseconds.
	ThreadCPU(tid uint64) uint64
	// FunctionFromIP returns the method whose code holds ip.
	FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT)
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

// Host is a process whose runtime is suspended as a whole: Linux.
type Host interface {
	Process
	clr.Runtime
	// Prime makes one walk while nothing is suspended.
	Prime(id clr.ThreadID)
}

// ThreadHost is a process whose threads are suspended one at a time: Windows.
// What it adds to clr.Threads is called while nothing is suspended.
type ThreadHost interface {
	Process
	clr.Threads
	// Table reads the process's modules and managed ranges; nil if they cannot
	// be read now.
	Table() *module.Table
	// Specials are where a walk cannot begin, as of the last Table.
	Specials() *seed.Specials
	// Managed steps over managed code; nil if it cannot.
	Managed() merge.Managed
}
