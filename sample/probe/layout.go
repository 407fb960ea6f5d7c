// Package probe is the tool's side of the C probe in src: the shared memory, the signals that carry requests,
// and the library itself.
//
// Sources: src/probe.h, which layout.go mirrors; signal(7), sigqueue(3), rt_tgsigqueueinfo(2),
// timer_create(2).
//
// Glossary. A *slot* belongs to a thread that gets requests: the tool writes one and the thread's handler
// carries it out. The *ring* holds records, one per sample. A *cookie* travels with a signal: the tag of the
// recording and the slot.
//
// Strategy. The tool never waits for a thread. It maps the file that the probe sent, writes slots, sends
// signals, and reads committed records. A record that is claimed but not committed (its thread was
// interrupted in the handler) is skipped and checked again later; its room is freed only when it is
// committed. If events are wanted, the runtime's session calls the probe on the thread that raises one. A
// wait becomes a record when it ends; until then it is in a table with a place for each waiting thread. The
// target can write the file, so every size and position in it is checked.
//
// Known gaps: Linux on x86-64 and ARM64; on Windows only events and copies. The code that delivers events on
// ARM64 has not been tested.
package probe

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
)

const (
	Version    = 9
	Magic      = 0x31656b6c61776553
	HeaderSize = 4096
	Slots      = 4096
	SlotSize   = 64
	RingSize   = 1 << 22
	align      = 64
	// Waiters bounds the threads whose waits are recorded at the same time.
	Waiters    = 2048
	waiterSize = 256
	nested     = 3
	startRoom  = 40
	// types bounds the types of dropped events.
	types    = 512
	typeSize = 512
	typeName = 480
	typesAt  = HeaderSize + Slots*SlotSize + Waiters*waiterSize
	thrown   = 1 << 63
	// rules bounds the types and frames with a rule.
	rules    = 1 << rulesLog
	rulesLog = 14
	// ruleFrame is the flag of a frame's rule: tasks.RuleFrame.
	ruleFrame = 16 << 32
	rulesAt   = typesAt + types*typeSize
	// MaxPayload is the most bytes kept of an event's payload.
	MaxPayload = 1024
	// FileSize is the size of the shared file without the room for reads.
	FileSize = beforeRing + RingSize

	beforeRing = rulesAt + rules*16
)

// Op is a request to a thread.
type Op uint32

const (
	OpSample Op = 1
	OpArm    Op = 2
	OpDisarm Op = 3
	OpLeave  Op = 4
	OpClock  Op = 5 // a sample of CPU time
)

// Why is the reason for a record.
type Why uint16

const (
	Asked    Why = 1
	Timer    Why = 2
	Armed    Why = 3
	Event    Why = 4 // of the runtime: the registers that a call preserves are known
	ClockHit Why = 5 // CPU time: one period
)

// Flags of a record.
const (
	Foreign = 1  // the stack is not the thread's own; it was copied by checked reads
	Cut     = 2  // the copy ends before the stack does
	Patched = 4  // the runtime has replaced a return address: Extra is present
	OnAlt   = 8  // on the alternate stack
	Learn   = 16 // an event that was recorded only for its stack
)

// Bits of a slot's clock that identify the event, and how far a slot may be from its place.
const (
	clockBits  = 20
	clockFirst = 1 << (clockBits - 1)
	near       = 64
)

// left is the value of the header's field once everything has been restored. It is 1 while
// that is done, and 0 before.
const left = 2

// reaped is set in an entry of the header's reap while a handler ends its timer.
const reaped = 1 << 30

// AskedCopy is the Event of a copy that the program itself requested. Its Since comes from the program.
const AskedCopy = 0x80000000

// Events that can be selected.
const (
	WaitEvents      = 1
	LockEvents      = 2
	AllocEvents     = 4
	ExceptionEvents = 8
)

// header mirrors struct sw_header.
type header struct {
	magic        uint64
	version, pid uint32
	base         uint64
	tag, legacy  uint32
	realTime     uint32
	left         uint32
	heartbeat    uint64
	stale        uint64
	period       uint64
	patch        uint64
	timerSignal  uint32
	maskedLow    uint32
	maskedHigh   uint32
	realSent     uint32
	head, tail   uint64
	signals      uint64
	dropped      uint64
	strangers    uint64
	timers       uint64
	stopped      uint64
	nanos        uint64
	reaping      uint32
	reap         [16]uint32
	events       uint32
	waitMin      uint64
	leave        uint32
	helper       uint32
	session      uint32
	failed       uint32
	waits        uint64
	waitStops    uint64
	locks        uint64
	lockStops    uint64
	allocs       uint64
	exceptions   uint64
	brief        uint64
	briefNanos   uint64
	inner        uint64
	early        uint64
	crowded      uint64
	missed       uint64
	eventNanos   uint64
	copies       uint64
	mainStack    uint64
	ending       uint32
	arch         uint32
	relay        uint32
	relaySent    uint32
	relayed      uint32
	timerKeep    uint32
	heap         uint64
	heapSize     uint64
	heapChanges  uint64
	threadHandle uint32
	chained      uint32
	code         uint64
	codeSize     uint64
	suspended    uint32
	hold         uint32
}

// rule mirrors struct sw_rule.
type rule struct{ table, rule uint64 }

// slot mirrors struct sw_slot.
type slot struct {
	tid, timer uint32
	low, high  uint64
	extra      uint64
	extraSize  uint32
	op         uint32
	ask        uint32
	answered   uint32
	error      uint32
	clock      uint32
	fs         uint64
}

// open mirrors struct sw_open.
type open struct {
	since, sp uint64
	id, size  uint32
	payload   [startRoom]byte
}

// waiter mirrors struct sw_waiter.
type waiter struct {
	tid, depth uint32
	_          [7]uint64
	open       [nested]open
}

// droppedType mirrors struct sw_type.
type droppedType struct {
	key, count, bytes uint64
	size              uint32
	_                 uint32
	name              [typeName]byte
}

// record mirrors struct sw_record.
type record struct {
	commit, claim uint64
	size, tid     uint32
	slot          uint32
	why, flags    uint16
	time          uint64
	weight        uint32
	stackSize     uint32
	extraSize     uint32
	nanos         uint32
	stack         uint64
	event         uint32
	payloadSize   uint32
	since         uint64
	below         uint64
	belowSize     uint64
	// regs follow: see format
}

// format holds what differs between architectures.
type format struct {
	regs  int // registers in a record
	extra int // room for the runtime's Thread, bytes
}

// formats are the known formats, by the header's arch.
var formats = map[context.Arch]format{context.ArchAMD64: {17, 192}, context.ArchARM64: {41, 256}}

const recordHead = 96

// record returns the size of a record without stack and payload.
func (f format) record() uint64 { return uint64(recordHead + 8*f.regs) }

// The sizes are part of the format.
var (
	_ [SlotSize]byte   = [unsafe.Sizeof(slot{})]byte{}
	_ [waiterSize]byte = [unsafe.Sizeof(waiter{})]byte{}
	_ [typeSize]byte   = [unsafe.Sizeof(droppedType{})]byte{}
	_ [recordHead]byte = [unsafe.Sizeof(record{})]byte{}
)
