// Package wire is the stream from a sampler to the tool: samples, and the tables that
// name what is in them. The sampler is the profiler in a CLR process, or an engine
// in the tool. Recordings consist of the same messages.
//
// Sources: our own format. Integers are the unsigned LEB128 of the DWARF 5
// standard (section 7.6), which encoding/binary calls uvarint; signed
// differences are zigzag coded as in encoding/binary's varint.
//
// Layout. A stream is a sequence of messages, each
//
//	u8 type, uvarint payload length, payload
//
// A payload is a sequence of uvarints and strings (uvarint length, bytes); the
// order of fields is that of the struct. A writer may use a longer form of a
// length than needed (it reserves three bytes and fills them in afterwards). A
// reader skips messages of unknown type, and unknown bytes at the end of a payload.
// So fields can be added. Hello.Version increases only when old readers must refuse.
//
// The tool never writes. To end the stream, it shuts down its sending side, reads for a
// moment longer, and closes. A sender may watch for the shutdown, and must treat a failed
// send as the end.
//
// Glossary. Module and method IDs belong to the stream and start at 1; 0 means
// "none". A gap code says why frames are missing. A GapName message carries its name,
// so that readers need no table of reasons.
//
// Strategy. The writer appends to a buffer that is reused, and allocates only
// when the buffer must grow. The reader checks every size before it uses it
// and is bounded by MaxPayload whatever the input says.
//
// Known gaps: one writer per stream, no seeking, and no compression (the stream uses a
// local socket).
package wire

import "github.com/seedwalk/seedwalk/unwind"

// Version is the version of the stream this package writes, and the newest it
// reads.
const Version = 1

// Limits. The writer truncates to them, and the reader refuses anything larger.
const (
	MaxPayload = 1<<21 - 1 // bytes of one message's payload: the largest length in three bytes
	MaxString  = 1 << 16   // bytes of one string
	MaxFrames  = 1 << 15   // frames of one sample
)

// GapCut is the gap code that the writer gives to a sample if it cuts the frames at
// MaxFrames. The program that sends the stream defines the other codes, which begin at 1.
const GapCut = 255

// Type is the first byte of a message.
type Type uint8

const (
	TypeHello   Type = 1
	TypeModule  Type = 2
	TypeMethod  Type = 3
	TypeThread  Type = 4
	TypeSample  Type = 5
	TypeStats   Type = 6
	TypeNote    Type = 7
	TypeBye     Type = 8
	TypeGapName Type = 9
	TypeEvent   Type = 10
	TypeLine    Type = 11
	TypeUsage   Type = 12
	TypeDropped Type = 13
)

var typeNames = [...]string{"type 0", "Hello", "Module", "Method", "Thread", "Sample", "Stats", "Note", "Bye",
	"GapName", "Event", "Line", "Usage", "Dropped"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown type"
}

// Message is one of *Hello, *Module, *Method, *Thread, *Sample, *Stats, *Note,
// *Bye, *GapName, *Event, *Line, *Usage and *Dropped.
type Message interface{ Type() Type }

// Hello opens a stream.
type Hello struct {
	Version       uint64 // of the stream; the writer fills in Version if it is 0
	PID           uint64 // process id as the process itself sees it
	Arch          string // GOARCH spelling: amd64, arm64
	Runtime       string // the CLR's name and version, for people
	StartUnixNano int64  // when sampling began
	RateMilliHz   uint64 // intended samples per second, times 1000
}

// Module describes a loaded image. A repeated ID replaces the earlier message.
type Module struct {
	ID            uint32 // from 1
	Start, End    uint64 // mapped range
	Bias          uint64 // mapped address minus the image's own address
	Path, BuildID string // BuildID in hexadecimal, or empty
}

// Method names a managed method.
type Method struct {
	ID         uint32 // from 1
	FunctionID uint64 // the CLR's
	Name       string // Namespace.Type.Method
	Module     string // name of its assembly
}

// Line gives the source position of a frame's Addr. A repeated Addr replaces the earlier
// message. An empty File means that the position is unknown.
type Line struct {
	Addr uint64
	File string
	Line uint32
}

// Thread names a thread. A repeated TID replaces the name.
type Thread struct {
	TID  uint64 // the kernel's thread id
	Name string
}

// Flags of a Frame.
const (
	FrameExact = 1 // IP is where the thread was interrupted, not a return address
	FrameProbe = 2 // the thread waits here for the sampler's own suspension to end
	// FrameKernel marks the leaf of a thread that is in the kernel: IP is where the thread
	// entered it. The kernel's own frames are unknown.
	FrameKernel = 4
	// FrameResumer marks a frame that only resumed the async method in the frames before it.
	FrameResumer = 8
)

// Frame is one activation of a Sample.
type Frame struct {
	Kind   unwind.Kind
	Trust  unwind.Trust
	Gap    uint8  // for KindGap: why frames are missing here
	Flags  uint8  // FrameExact, FrameProbe, FrameKernel, FrameResumer
	Module uint32 // Module.ID, 0 = none
	Method uint32 // Method.ID, 0 = none
	IP     uint64
}

// Addr is the address for the lookup of lines and symbols.
func (f *Frame) Addr() uint64 { return unwind.Address{IP: f.IP, Exact: f.Exact()}.Lookup() }

// Exact reports whether IP is an interrupted instruction.
func (f *Frame) Exact() bool { return f.Flags&FrameExact != 0 }

// Sample is one merged stack. A sample of a running thread carries the same CPUNanos as any
// other, the period of the clock; the tool scales a thread's samples to the thread's Usage.
type Sample struct {
	TID          uint64
	TimeUnixNano int64
	WallNanos    uint64 // elapsed time this sample stands for
	CPUNanos     uint64 // CPU time this sample stands for, before it is scaled
	Verdict      uint32 // of the seed
	HRESULT      uint32 // of DoStackSnapshot
	Gap          uint8  // 0 = complete, else the first reason why not
	Frames       []Frame
	Activity     Activity // current one of the thread
}

// Activity holds the ids of a System.Diagnostics.Activity, or all zero.
type Activity struct {
	Trace [16]byte
	Span  [8]byte
}

// Kinds of an Event.
const (
	EventWait       = 1 // for a wait handle
	EventMonitor    = 2 // Monitor.Wait, and waits that use it
	EventLock       = 3 // for a Monitor that another thread held
	EventAllocation = 4
	EventException  = 5
	EventCopy       = 6 // asked for by the program itself, whose tag is Lock; to a client library only
	EventQueue      = 7 // a work item waited in the thread pool's queue
	EventStarved    = 8 // the thread pool added a thread, because no thread took queued work
	NumEvents       = 9
)

// EventOpen marks a wait that had not ended. Nanos is then a lower bound.
const EventOpen = 1

// Event is what a thread did, with its stack.
type Event struct {
	TID          uint64
	TimeUnixNano int64 // of its end
	Kind, Flags  uint8
	Nanos        uint64 // of a wait, a lock, or a queued work item
	Bytes        uint64 // that an allocation sample represents
	Owner        uint64 // thread that held the lock, 0 if unknown
	Lock         uint64 // identity of the lock
	Name         string // of the type that was allocated or thrown
	Text         string // an exception's message
	Gap          uint8  // 0 = complete
	Frames       []Frame
}

// Dropped sums up the events of a kind and type that have no stack, because the buffer was full. A repeated
// kind and name replaces the values: they are totals since Hello.
type Dropped struct {
	Kind  uint8  // EventAllocation or EventException
	Name  string // of the type, cut at MaxDroppedName UTF-16 units; "" for types without a place of their own
	Count uint64
	Bytes uint64 // that the allocations represent
}

// MaxDroppedName is the length of the longest name of a Dropped.
const MaxDroppedName = 240

// Causes of a Usage: why CPU time has no samples.
const (
	CauseNone     = 0 // the thread was watched
	CauseShort    = 1 // the thread ended before it was watched
	CauseUnproven = 2 // the runtime's tables were not verified yet
	CauseStartup  = 3 // the time was used before sampling began
	CauseNoRoom   = 4 // a buffer was full and copies were dropped
	CauseTool     = 5 // the tool was too slow, or could not watch the thread
	CauseBlocked  = 6 // the thread blocked the signal that takes its samples
	CauseRate     = 7 // the requested rate is too low for the thread's time
	CauseTicks    = 8 // the thread had a CPU timer, and ran between the kernel's ticks
	NumCauses     = 9
)

// ProcessTID is the TID of a Usage that holds the clock of the whole process.
const ProcessTID = 0

// Usage is the CPU time of a thread within the recording, sent when the thread or the
// recording ends. Several messages of one TID add up, for two reasons. The kernel gives the TID
// of an ended thread to a later one. Sampled and unsampled time of a thread may also come in
// two messages. A message of ProcessTID replaces the previous one. Its Cause applies to the
// process's time that belongs to no known thread.
type Usage struct {
	TID         uint64
	CPUNanos    uint64 // exact CPU time, user and kernel
	KernelNanos uint64 // part of CPUNanos spent in the kernel where no sample can fall; at most CPUNanos
	Cause       uint8  // why this time has no samples; CauseNone: it was watched
}

// Stats is one counter or histogram bucket. A repeated key replaces the
// value: values are totals since Hello.
type Stats struct {
	Key   string
	Value uint64
}

// Note is one line for the user.
type Note struct{ Text string }

// Bye closes a stream that ended as intended.
type Bye struct{ Reason string }

// GapName gives the name of a gap code.
type GapName struct {
	Code uint8
	Name string
}

func (*Hello) Type() Type   { return TypeHello }
func (*Module) Type() Type  { return TypeModule }
func (*Method) Type() Type  { return TypeMethod }
func (*Thread) Type() Type  { return TypeThread }
func (*Sample) Type() Type  { return TypeSample }
func (*Stats) Type() Type   { return TypeStats }
func (*Note) Type() Type    { return TypeNote }
func (*Bye) Type() Type     { return TypeBye }
func (*GapName) Type() Type { return TypeGapName }
func (*Event) Type() Type   { return TypeEvent }
func (*Line) Type() Type    { return TypeLine }
func (*Usage) Type() Type   { return TypeUsage }
func (*Dropped) Type() Type { return TypeDropped }
