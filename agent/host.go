// Package agent samples one process: tables, walking, merging, naming and
// sending, in the loop of one sampler thread. It does not know in which process
// it runs, on which system, or of which architecture the target is.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl (ICorProfilerInfo10
// SuspendRuntime, ICorProfilerInfo2 DoStackSnapshot), release 9.0; the protocol of
// package snapshot.
//
// Glossary. A *round* samples all threads once, or as many as there are slots. A
// *host* is the process as the engine needs it: what is mapped, which threads there
// are, the runtime's calls. A capture is *outdated* if modules came or went before
// it could be walked again.
//
// Strategy. Everything that touches the process stands behind Process, so that
// the loop runs the same against a simulated process. Between the rounds of
// snapshot.Sampler nothing is suspended, and only there does this package
// allocate, read files and write to the tool. How threads are stopped is a
// strategy: rounds.go suspends the runtime and takes all at once, single.go one
// thread after the other.
//
// Known gaps: a runtime without SuspendRuntime is sampled thread by thread, on Windows
// only; a module that is unloaded between a capture and its walk costs the sample.
package agent

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
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

// Source is an offset in a method's IL, and the line that was compiled to it.
type Source struct {
	metadata.Place
	IL uint32
}

// Process is the process that is sampled, on every platform: the agent's own or
// another. One thread calls it.
type Process interface {
	// PID is its number, Arch what it runs on.
	PID() uint64
	Arch() context.Arch
	// Table reads the process's modules and managed ranges; nil if they cannot
	// be read now. It is called while nothing is suspended.
	Table() *module.Table
	// ThreadName is the system's name of a kernel thread, "" if it has none.
	ThreadName(tid uint64) string
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
	// FunctionName gives a method's name and its module's file.
	FunctionName(f clr.FunctionID) (name clr.MethodName, module string, ok bool)
	// Source is where the code at an address comes from, of a method; its Line is 0 if there is no Portable PDB. Without il it may then be not ok, which is
	// cheaper.
	Source(f clr.FunctionID, addr uint64, il bool) (s Source, ok bool)
	// Images are its managed modules, nil if they cannot be read. Forget is called when modules may have gone: what is remembered of them is void.
	Images() *naming.Images
	Forget()
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
	// Memory reads the target's memory outside the suspended window, for the
	// runtime's own tables.
	Memory() (memory.Reader, error)
}

// ThreadHost is a process whose threads are suspended one at a time: Windows.
// What it adds to clr.Threads is called while nothing is suspended.
type ThreadHost interface {
	Process
	clr.Threads
	// Specials are where a walk cannot begin, as of the last Table.
	Specials() *seed.Specials
	// Managed steps over managed code; nil if it cannot.
	Managed() merge.Managed
}
