// Package agent samples one process: tables, walking, merging, naming and
// sending, in the loop of one sampler thread. It does not depend on the process
// that it runs in, on the system, or on the target's architecture.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl (ICorProfilerInfo10
// SuspendRuntime, ICorProfilerInfo2 DoStackSnapshot), release 9.0; the protocol of
// package snapshot.
//
// Glossary. A *round* samples all threads once, or as many as there are slots. A
// *host* is the engine's view of the process: mappings, threads, and calls of the
// runtime. A capture is *outdated* if modules changed before it could be walked again.
//
// Strategy. Process hides everything that touches the process, so the loop also runs
// against a simulated process. Nothing is suspended between the rounds of
// snapshot.Sampler. Only there does this package allocate, read files, and write to
// the tool. A strategy stops the threads: rounds.go suspends the whole runtime,
// single.go one thread after the other.
//
// Known gaps: a runtime without SuspendRuntime is sampled thread by thread, on Windows
// only; a module that is unloaded between a capture and its walk costs the sample.
package agent

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Thread is a managed thread with its name.
type Thread struct {
	clr.Thread
	Name string
}

// EventKind is the kind of an event that an application thread reported.
type EventKind uint8

const (
	EventJIT          EventKind = 1 + iota // a method was compiled
	EventModuleLoad                        // an assembly's module was loaded
	EventModuleUnload                      // a module is about to be unloaded: its FunctionIDs become invalid
	EventLost                              // the ring overflowed: unknown events are lost
)

// Source is an offset in a method's IL and its source line.
type Source struct {
	metadata.Place
	IL uint32
}

// Process is the sampled process, on every platform: the agent's own process or another.
// Only one thread calls it.
type Process interface {
	// PID returns the process ID. Arch returns the architecture.
	PID() uint64
	Arch() context.Arch
	// Table reads the process's modules and managed ranges. It returns nil if they
	// cannot be read now. It is called while nothing is suspended.
	Table() *module.Table
	// ThreadName returns the system's name of a kernel thread, "" if it has none.
	ThreadName(tid uint64) string
	// Threads appends the live managed threads to buf.
	Threads(buf []Thread) []Thread
	// Event returns the oldest unread event.
	Event() (EventKind, bool)
	// LoaderChanges grows whenever a shared object is loaded or unloaded.
	LoaderChanges() uint64
	// ThreadCPU returns the CPU time of a kernel thread in nanoseconds.
	ThreadCPU(tid uint64) uint64
	// Now returns the nanoseconds of a monotonic clock.
	Now() int64
	// FunctionFromIP returns the method whose code holds ip.
	FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT)
	// FunctionName returns a method's name and the file of its module.
	FunctionName(f clr.FunctionID) (name demangle.MethodName, module string, ok bool)
	// Source returns the source position of an address in a method. Line is 0 without a
	// Portable PDB. If il is false and there is no PDB, Source may return false, which is
	// cheaper.
	Source(f clr.FunctionID, addr uint64, il bool) (s Source, ok bool)
	// Images returns the managed modules, nil if they cannot be read. Forget is called
	// when modules may have been unloaded: cached results about them are then invalid.
	Images() *naming.Images
	Forget()
	// Pin keeps FunctionIDs alive until Unpin (or a time limit).
	Pin()
	Unpin()
	// Stopping reports that the process is shutting the profiler down.
	Stopping() bool
	// Version returns the runtime's name and version for display.
	Version() string
}

// Host is a process whose whole runtime is suspended (Linux).
type Host interface {
	Process
	clr.Runtime
	// Prime makes one walk while nothing is suspended.
	Prime(id clr.ThreadID)
	// Memory reads the runtime's tables in the target's memory, outside the suspended
	// window.
	Memory() (memory.Reader, error)
}

// ThreadHost is a process whose threads are suspended one at a time (Windows). The methods
// that it adds to clr.Threads are called while nothing is suspended.
type ThreadHost interface {
	Process
	clr.Threads
	// Specials returns the code where a walk cannot begin, according to the last Table.
	Specials() *managed.Specials
	// Managed returns a stepper over managed code, or nil.
	Managed() *managed.Tables
}
