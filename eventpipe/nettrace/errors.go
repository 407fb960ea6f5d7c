package nettrace

import "fmt"

// Reason is the reason why a trace, or a part of it, cannot be read.
type Reason uint8

const (
	NoReason    Reason = iota
	Empty              // there are no bytes
	NotNettrace        // not a trace, or of an unsupported version
	TooNew             // the trace requires a newer reader
	Truncated          // the trace ends inside a block or object
	NoEnd              // the trace ends between two blocks, without an end mark
	BadFraming         // a block starts or ends incorrectly
	BadSize            // a block's size is invalid
	BadTrace           // the description of the trace is invalid
	Trailing           // bytes follow the end mark
	ReadFailed         // the source failed; Err says how

	BadPadding   // bytes that should be zero are not
	BadBlock     // a block's header is invalid
	BadEvent     // an event's header is invalid or does not fit its block
	BadMetadata  // a description of events is invalid
	BadStacks    // a block of stacks is invalid
	BadPoint     // a sequence point is invalid
	BadThreads   // a table of threads is invalid
	NoMetadata   // an event has no metadata
	NoStack      // an event refers to a missing stack
	NoThread     // an event refers to an unknown thread
	UnknownBlock // a block of an unknown kind was skipped
	TooMuch      // the content exceeds the reader's limits
	numReasons
)

var reasons = [numReasons]string{"nothing", "the trace is empty", "this is not a .nettrace trace",
	"the trace needs a newer reader",
	"the trace is cut off", "the trace ends without its end mark", "the trace is damaged between blocks",
	"a block's size is impossible",
	"the trace's description is impossible", "bytes follow the end of the trace", "the trace cannot be read",
	"padding is not zero", "a block's header is damaged", "an event is damaged",
	"a description of events is damaged",
	"a block of stacks is damaged", "a sequence point is damaged", "a table of threads is damaged",
	"an event of a kind that was never described",
	"an event's stack is lost", "an event's thread was never described",
	"a block of unknown kind was skipped", "the trace holds more than the reader's limits"}

// String describes the reason for a message.
func (r Reason) String() string {
	if r < numReasons {
		return reasons[r]
	}
	return "reason?"
}

// Error is the reason why reading ended early, or a fault inside the trace.
type Error struct {
	Reason Reason
	Offset int64  // from the trace's first byte
	What   string // details, or ""
	Err    error  // of the source
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%v, at offset %d", e.Reason, e.Offset)
	if e.What != "" {
		s += ": " + e.What
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Fault is a kind of damage that did not end the reading.
type Fault struct {
	Error       // first fault of this kind
	Count int64 // number of faults
}
