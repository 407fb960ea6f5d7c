package unwind

// Stop says why a step or a walk ended. StopNone means a step succeeded.
type Stop uint8

const (
	StopNone    Stop = iota
	EndOfStack       // there is no caller: the unwind data says so (undefined return address), the code is a root's, or the return address is 0 at the stack's high end
	Managed          // the next frame is managed code: the registers are a seed
	BufferFull       // the output has no room; registers hold the next frame
	NoProgress       // neither SP nor return address changed, or SP went down on one stack
	OutOfStack       // SP or CFA left the stack's bounds
	Unreadable       // a needed memory word is not in the window
	BadInfo          // unwind data is malformed
	NoInfo           // no unwind data covers the ip and no fallback applied
	Limit            // the step limit was reached
	Unsupported      // unwind data is well formed but of an unsupported kind (x64 version 3, SVE)
	NullReturn       // the return address is 0 where the stack does not end: the walk is lost
)

var stopNames = [...]string{"none", "end-of-stack", "managed", "buffer-full", "no-progress", "out-of-stack", "unreadable", "bad-info", "no-info", "limit", "unsupported", "null-return"}

func (s Stop) String() string {
	if int(s) < len(stopNames) {
		return stopNames[s]
	}
	return "stop?"
}

// Bounds are what a walk may not leave. The zero value bounds nothing but the
// number of steps.
type Bounds struct {
	Low, High uint64 // the stack: Low <= SP < High; High 0 = unknown
	MaxSteps  int    // at most this many steps; 0 = DefaultMaxSteps
	Guess     bool   // allow doubtful steps where unwind data is missing: by the code, or by the frame pointer
	Follow    bool   // allow those by the code, which are seldom wrong
}

// rootZone is how near to the stack's high end a frame whose return address is 0
// is its last, bytes. Windows begins a thread's stack up to a page below the end.
const rootZone = 4096

// Null reports what it means that the frame at sp has the return address 0. high is
// the end of the memory that is known, for a stack whose own end is not.
func (b *Bounds) Null(sp, high uint64) Stop {
	if b.High != 0 {
		high = b.High
	}
	if sp <= high && high-sp <= rootZone {
		return EndOfStack
	}
	return NullReturn
}

// DefaultMaxSteps bounds a walk whose caller gave no limit.
const DefaultMaxSteps = 4096
