package unwind

// Stop is why a step or a walk ended. StopNone means that a step succeeded.
type Stop uint8

const (
	StopNone Stop = iota
	// there is no caller: the unwind data leave the return address undefined, the code is a root's, or the
	// return address is 0 at the stack's high end
	EndOfStack
	Managed     // the next frame is managed code: the registers are a seed
	BufferFull  // the output is full; the registers are those of the next frame
	NoProgress  // neither SP nor return address changed, or SP went down on one stack
	OutOfStack  // SP or CFA left the stack's bounds
	Unreadable  // a needed memory word is not in the window
	BadInfo     // unwind data is malformed
	NoInfo      // no unwind data covers the ip and no fallback applies
	Limit       // the step limit was reached
	Unsupported // unwind data is well formed but of an unsupported kind (x64 version 3, SVE)
	NullReturn  // the return address is 0 before the stack's end: the walk is lost
)

var stopNames = [...]string{"none", "end-of-stack", "managed", "buffer-full", "no-progress", "out-of-stack",
	"unreadable", "bad-info", "no-info", "limit", "unsupported", "null-return"}

func (s Stop) String() string {
	if int(s) < len(stopNames) {
		return stopNames[s]
	}
	return "stop?"
}

// WalkEnd returns why a walk that has described n frames must end before the next step. The output has room
// for room frames, and the walk may take limit steps.
func WalkEnd(managed bool, n, room, limit int) Stop {
	switch {
	case managed:
		return Managed
	case n == room:
		return BufferFull
	case n == limit:
		return Limit
	}
	return StopNone
}

// Bounds limit a walk. The zero value bounds only the number of steps.
type Bounds struct {
	Low, High uint64 // the stack's memory, [Low, High); a caller's SP may be High; High 0 = unknown
	MaxSteps  int    // at most this many steps; 0 = DefaultMaxSteps
	Guess     bool   // allow doubtful steps without unwind data: by the code, or by the frame pointer
	Follow    bool   // without Guess: allow only those by the code, which are rarely wrong
}

// rootZone is the distance in bytes from the stack's high end within which a frame with return address 0 is
// the last one. Windows starts a thread's stack up to a page below the end.
const rootZone = 4096

// Null returns the meaning of a return address of 0 in the frame at sp. high is the end of known memory, for
// a stack without a known end.
func (b *Bounds) Null(sp, high uint64) Stop {
	if b.High != 0 {
		high = b.High
	}
	if sp <= high && high-sp <= rootZone {
		return EndOfStack
	}
	return NullReturn
}

// DefaultMaxSteps bounds a walk without a limit of its caller.
const DefaultMaxSteps = 4096
