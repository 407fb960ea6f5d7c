// Package probe is the tool's side of the C probe in src: the memory they share,
// the signals that ask, and the library itself.
//
// Sources: src/probe.h, which layout.go mirrors; signal(7), sigqueue(3),
// rt_tgsigqueueinfo(2), timer_create(2).
//
// Glossary. A *slot* is a thread that is asked: the tool writes what it wants and
// the thread's handler obeys. The *ring* holds records, one a sample. A *cookie*
// travels with a signal: the tag of the recording and the slot.
//
// Strategy. The tool never waits. It maps the file the probe sent, writes slots,
// sends signals, and reads what is committed. A record that is claimed and not
// committed (its thread was interrupted in the handler) is passed by and looked at
// again; its room is free only then. Where events are wanted the runtime's session calls
// the probe on the thread that raises one; a wait is a record when it ends, and until
// then stands in a table that has a place for each thread that waits. The file can be
// written by the target: every size and position in it is checked.
//
// Known gaps: Linux on x86-64 and ARM64; on Windows events only. Events of ARM64 are
// delivered by code that no test has run.
package probe

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
)

const (
	Version    = 7
	Magic      = 0x31656b6c61776553
	HeaderSize = 4096
	Slots      = 4096
	SlotSize   = 64
	RingSize   = 1 << 22
	align      = 64
	// Waiters is how many threads may wait at the same time.
	Waiters    = 2048
	waiterSize = 256
	nested     = 3
	startRoom  = 40
	// types is how many types of dropped events have a place.
	types    = 512
	typeSize = 512
	typeName = 480
	typesAt  = HeaderSize + Slots*SlotSize + Waiters*waiterSize
	thrown   = 1 << 63
	// MaxPayload is how much of an event's payload is kept.
	MaxPayload = 1024
	// FileSize is the shared file's, without the room for reads.
	FileSize = beforeRing + RingSize

	beforeRing = typesAt + types*typeSize
)

// Op is what a thread is asked to do.
type Op uint32

const (
	OpSample Op = 1
	OpArm    Op = 2
	OpDisarm Op = 3
	OpLeave  Op = 4
	OpClock  Op = 5 // a sample of processor time
)

// Why says why a record was made.
type Why uint16

const (
	Asked    Why = 1
	Timer    Why = 2
	Armed    Why = 3
	Event    Why = 4 // of the runtime: a call's own registers are known
	ClockHit Why = 5 // processor time: one period
)

// Flags of a record.
const (
	Foreign = 1  // the stack is not the thread's own: a checked copy
	Cut     = 2  // the copy ends before the stack does
	Patched = 4  // a return address is the runtime's: Extra is there
	OnAlt   = 8  // on the alternate stack
	Learn   = 16 // an event for the sake of its stack only
)

// Bits of a slot's clock that name the event, and how far from its place a slot may be.
const (
	clockBits = 20
	near      = 64
)

// left is the header's left when everything has been put back; 1 is before.
const left = 2

// AskedCopy is the Event of a copy that the program itself has asked for. Its Since is the
// program's own.
const AskedCopy = 0x80000000

// Events that may be wanted.
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
}

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
	// regs follows: see format
}

// format is what differs between architectures.
type format struct {
	regs  int // that a record has
	extra int // room for the runtime's Thread, bytes
}

// formats are those there are, by the header's arch.
var formats = map[context.Arch]format{context.ArchAMD64: {17, 192}, context.ArchARM64: {41, 256}}

const recordHead = 96

// record is the size of a record without what it is of.
func (f format) record() uint64 { return uint64(recordHead + 8*f.regs) }

// The sizes are part of the format.
var (
	_ [SlotSize]byte   = [unsafe.Sizeof(slot{})]byte{}
	_ [waiterSize]byte = [unsafe.Sizeof(waiter{})]byte{}
	_ [typeSize]byte   = [unsafe.Sizeof(droppedType{})]byte{}
	_ [recordHead]byte = [unsafe.Sizeof(record{})]byte{}
)
