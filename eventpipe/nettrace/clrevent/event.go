// Package clrevent decodes the payloads of the .NET runtime's events. Traces do not contain
// their layouts. Packages eventpipe/waits and report/trace call it with the events of a trace.
//
// Sources: dotnet/runtime src/coreclr/vm/ClrEtwAll.man, release 9.0;
// microsoft/perfview src/TraceEvent/Parsers/ClrTraceEventParser.cs; sizes were
// compared with those in traces of .NET 9.0.5 and 10.0.9.
//
// Glossary. A layout is found by provider, id and version. Later versions append
// fields, so an unknown newer version is read as the newest known one.
// The rundown provider lists what exists when a session ends; its ids are not
// those of the runtime's provider: 144 is the end of an unloaded method here and
// a listed one there.
//
// Strategy. KindOf is called once for each description of events. Decoders check every
// length and allocate only for texts. Their argument pointer is the size of a pointer in the
// traced process, 4 or 8 bytes. They return ok false if the payload is too short.
//
// Known gaps: events of tiering and most of the collector are not decoded, because nothing uses
// them yet.
package clrevent

import (
	"math"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// Providers.
const (
	Runtime   = "Microsoft-Windows-DotNETRuntime"
	Rundown   = "Microsoft-Windows-DotNETRuntimeRundown"
	EventPipe = "Microsoft-DotNETCore-EventPipe"
	Sampler   = "Microsoft-DotNETCore-SampleProfiler"
	Framework = "System.Diagnostics.Eventing.FrameworkEventSource"
)

// Keywords of the runtime's provider.
const (
	KeywordLoader     = 0x8
	KeywordJIT        = 0x10
	KeywordNGEN       = 0x20
	KeywordContention = 0x4000
	KeywordThreading  = 0x10000
	KeywordWaitHandle = 0x40000000000

	KeywordThreadPool = 0x2 // of the provider Framework
)

// Kind is the meaning of an event, for any provider, id, and version.
type Kind uint8

const (
	None            Kind = iota
	ContentionStart      // a thread starts to wait for a lock
	ContentionStop
	LockCreated
	WaitStart // a thread starts to wait for a wait handle
	WaitStop
	MethodLoad   // a method got code
	MethodUnload // a method lost its code
	MethodListed // a method had code when the session ended
	ModuleLoad
	ThreadCreated
	RuntimeInfo
	ProcessInfo
	CPUSample // the stack of a thread, at an interval
	AllocationTick
	AllocationSampled
	ExceptionThrown
	CollectionStart
	SuspendStart // the runtime starts to suspend all threads
	RestartEnd   // all threads run again
	JITStart     // a method is about to be compiled
	WorkQueued   // a work item was put into the thread pool's queue
	WorkTaken    // a thread of the pool took a work item
	PoolAdjusted // the thread pool changed its number of threads
)

type key struct {
	provider string
	id       uint32
}

// layouts lists the kind and the lowest supported version by provider and id.
var layouts = map[key]struct {
	kind   Kind
	oldest uint32
}{
	{Runtime, 81}: {ContentionStart, 0}, {Runtime, 90}: {LockCreated, 0}, {Runtime, 91}: {ContentionStop, 0},
	{Runtime, 301}: {WaitStart, 0}, {Runtime, 302}: {WaitStop, 0},
	{Runtime, 143}: {MethodLoad, 0}, {Runtime, 144}: {MethodUnload, 0},
	{Runtime, 152}: {ModuleLoad, 1}, {Runtime, 85}: {ThreadCreated, 0}, {Runtime, 187}: {RuntimeInfo, 0},
	{Rundown, 143}: {MethodListed, 0}, {Rundown, 144}: {MethodListed, 0}, {Rundown, 154}: {ModuleLoad, 1},
	{Rundown, 153}: {ModuleLoad, 1},
	{Rundown, 187}: {RuntimeInfo, 0}, {EventPipe, 1}: {ProcessInfo, 0}, {Sampler, 0}: {CPUSample, 0},
	{Runtime, 10}: {AllocationTick, 0}, {Runtime, 303}: {AllocationSampled, 0},
	{Runtime, 80}: {ExceptionThrown, 1},
	{Runtime, 1}:  {CollectionStart, 1}, {Runtime, 9}: {SuspendStart, 1}, {Runtime, 3}: {RestartEnd, 0},
	{Runtime, 145}:  {JITStart, 0},
	{Framework, 30}: {WorkQueued, 0}, {Framework, 31}: {WorkTaken, 0}, // .NET 5 and later
	{Runtime, 61}: {WorkQueued, 0}, {Runtime, 62}: {WorkTaken, 0}, {Runtime, 55}: {PoolAdjusted, 0},
}

// KindOf returns the Kind of events with a description, None if this package does not read
// them.
func KindOf(provider string, id, version uint32) Kind {
	l, ok := layouts[key{provider, id}]
	if !ok || version < l.oldest {
		return None
	}
	return l.kind
}

// reader reads a payload.
type reader struct {
	buf.Reader
	pointer int
}

func read(payload []byte, pointer int) reader { return reader{buf.At(payload, 0), pointer} }

func (r *reader) ptr() uint64 {
	if r.pointer == 4 {
		return uint64(r.U32())
	}
	return r.U64()
}

func (r *reader) text() string {
	start := r.Pos()
	for r.OK() {
		if r.U16() == 0 && r.OK() {
			return nettrace.UTF16(r.Data[start : r.Pos()-2])
		}
	}
	return ""
}

// Contention is the start of a wait for a lock.
type Contention struct {
	Native bool   // a lock of the runtime itself
	Lock   uint64 // 0 = not said (before version 2)
	Object uint64 // the same
	Owner  uint64 // system ID of the thread that holds it; 0 = unknown
}

// DecodeContention reads ContentionStart.
func DecodeContention(payload []byte, version uint32, pointer int) (c Contention, ok bool) {
	r := read(payload, pointer)
	c.Native = r.U8() == 1
	r.U16()
	if version >= 2 {
		c.Lock, c.Object, c.Owner = r.ptr(), r.ptr(), r.U64()
	}
	return c, r.OK()
}

// DecodeContentionStop reads the duration of a wait for a lock, in nanoseconds. It returns 0
// if the duration is missing or invalid.
func DecodeContentionStop(payload []byte, version uint32) (nanos int64, ok bool) {
	r := read(payload, 8)
	r.U8()
	r.U16()
	if version < 1 {
		return 0, r.OK()
	}
	f := math.Float64frombits(r.U64())
	if !(f > 0 && f < 1<<62) {
		f = 0
	}
	return int64(f), r.OK()
}

// Wait is the start of a wait for a wait handle.
type Wait struct {
	Monitor bool   // Monitor.Wait and what is built on it
	Object  uint64 // of a Monitor, else 0
}

// DecodeWait reads WaitStart.
func DecodeWait(payload []byte, pointer int) (w Wait, ok bool) {
	r := read(payload, pointer)
	w.Monitor = r.U8() == 1
	w.Object = r.ptr()
	return w, r.OK()
}

// Method describes the code of a method.
type Method struct {
	ID, Module  uint64
	Start       uint64
	Size, Token uint32
	Flags       uint32
	Namespace   string // the type's full name
	Name        string
	Signature   string
}

// FullName returns the names of the type and of the method.
func (m *Method) FullName() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "." + m.Name
}

// DecodeMethod reads MethodLoad, MethodUnload and MethodListed.
func DecodeMethod(payload []byte) (m Method, ok bool) {
	r := read(payload, 8)
	m.ID, m.Module, m.Start = r.U64(), r.U64(), r.U64()
	m.Size, m.Token, m.Flags = r.U32(), r.U32(), r.U32()
	m.Namespace, m.Name, m.Signature = r.text(), r.text(), r.text()
	return m, r.OK()
}

// Module is an assembly's module.
type Module struct {
	ID, Assembly uint64
	IL, Native   string // paths
}

// DecodeModule reads ModuleLoad.
func DecodeModule(payload []byte) (m Module, ok bool) {
	r := read(payload, 8)
	m.ID, m.Assembly = r.U64(), r.U64()
	r.U64() // flags, and a word that is reserved
	m.IL, m.Native = r.text(), r.text()
	return m, r.OK()
}

// Thread is a managed thread.
type Thread struct {
	ID         uint64 // the runtime's
	Index, TID uint32 // managed id, the system's id
}

// DecodeThread reads ThreadCreated.
func DecodeThread(payload []byte) (t Thread, ok bool) {
	r := read(payload, 8)
	t.ID = r.U64()
	r.U64()
	r.U32()
	t.Index, t.TID = r.U32(), r.U32()
	return t, r.OK()
}

// Info describes the runtime.
type Info struct {
	Version     [4]uint16
	CommandLine string
	Library     string // path of the runtime's own library, or of the single file
}

// DecodeRuntime reads RuntimeInfo.
func DecodeRuntime(payload []byte) (i Info, ok bool) {
	r := read(payload, 8)
	r.U16()
	r.U16()
	r.U64() // version of the base library
	for n := range i.Version {
		i.Version[n] = r.U16()
	}
	r.U32()
	r.U8()
	i.CommandLine = r.text()
	r.Skip(16)
	i.Library = r.text()
	return i, r.OK()
}

// Process describes the traced process.
type Process struct{ CommandLine, OS, Arch string }

// DecodeProcess reads ProcessInfo. Runtimes before .NET 5.0 report the command line only.
func DecodeProcess(payload []byte) (p Process, ok bool) {
	r := read(payload, 8)
	p.CommandLine = r.text()
	if r.Len() > 0 {
		p.OS, p.Arch = r.text(), r.text()
	}
	return p, r.OK()
}
