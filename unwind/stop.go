package unwind

// Stop says why a step or a walk ended. StopNone means a step succeeded.
type Stop uint8

const (
	StopNone    Stop = iota
	EndOfStack       // the unwind data says: no caller (undefined return address, or return address 0)
	Managed          // the next frame is managed code: the registers are a seed
	BufferFull       // the output has no room; registers hold the next frame
	NoProgress       // neither SP nor return address changed, or SP went down
	OutOfStack       // SP or CFA left the stack's bounds
	Unreadable       // a needed memory word is not in the window
	BadInfo          // unwind data is malformed
	NoInfo           // no unwind data covers the ip and no fallback applied
	Limit            // the step limit was reached
	Unsupported      // unwind data is well formed but of an unsupported kind (x64 version 3, SVE)
)

var stopNames = [...]string{"none", "end-of-stack", "managed", "buffer-full", "no-progress", "out-of-stack", "unreadable", "bad-info", "no-info", "limit", "unsupported"}

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
	Guess     bool   // allow doubtful steps (frame pointer) where unwind data is missing
}

// DefaultMaxSteps bounds a walk whose caller gave no limit.
const DefaultMaxSteps = 4096
