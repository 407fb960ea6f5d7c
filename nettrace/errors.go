package nettrace

import "fmt"

// Reason says what is wrong with a trace.
type Reason uint8

const (
	NoReason    Reason = iota
	Empty              // there are no bytes
	NotNettrace        // it is something else, or of a version that is not read
	TooNew             // it says that a newer reader is needed
	Truncated          // the bytes end inside something
	NoEnd              // the bytes end between two blocks, without the mark of the end
	BadFraming         // what should start or end a block does not
	BadSize            // a block's size cannot be
	BadTrace           // the description of the trace cannot be
	Trailing           // bytes follow the mark of the end
	ReadFailed         // the source failed; Err says how

	BadPadding   // bytes that should be zero are not
	BadBlock     // a block's header cannot be
	BadEvent     // an event's header cannot be, or does not fit its block
	BadMetadata  // a description of events cannot be
	BadStacks    // a block of stacks cannot be
	BadPoint     // a sequence point cannot be
	BadThreads   // a table of threads cannot be
	NoMetadata   // an event is of a kind that was not described
	NoStack      // an event names a stack that is not there, or no longer
	NoThread     // an event names a thread that was not described
	UnknownBlock // a block of a kind unknown was skipped
	TooMuch      // more was to be remembered than the reader's limits allow
	numReasons
)

var reasons = [numReasons]string{"nothing", "the trace is empty", "this is no .nettrace trace", "the trace needs a newer reader",
	"the trace is cut off", "the trace ends without its end mark", "the trace is damaged between blocks", "a block's size is impossible",
	"the trace's description is impossible", "bytes follow the end of the trace", "the trace cannot be read",
	"padding is not zero", "a block's header is damaged", "an event is damaged", "a description of events is damaged",
	"a block of stacks is damaged", "a sequence point is damaged", "a table of threads is damaged", "an event of a kind that was never described",
	"an event's stack is lost", "an event's thread was never described", "a block of unknown kind was skipped", "the trace holds more than the reader's limits"}

// String says it in words for a message.
func (r Reason) String() string {
	if r < numReasons {
		return reasons[r]
	}
	return "reason?"
}

// Error is why reading ended early, or a fault inside the trace.
type Error struct {
	Reason Reason
	Offset int64  // from the trace's first byte
	What   string // more words, "" if the reason says all
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
	Error       // the first of its kind
	Count int64 // how often
}
