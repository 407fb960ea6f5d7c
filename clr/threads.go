package clr

// SuspendStatus says what came of suspending one thread.
type SuspendStatus uint8

const (
	Suspended     SuspendStatus = iota // the count went up by one; the thread may still run until Context
	SuspendGone                        // the thread has ended
	SuspendDenied                      // no right to open or suspend it
)

var suspendNames = [...]string{"suspended", "gone", "denied"}

func (s SuspendStatus) String() string {
	if int(s) < len(suspendNames) {
		return suspendNames[s]
	}
	return "suspend?"
}

// Threads is a CLR in this process whose threads are suspended one at a time:
// Windows, real or simulated. Its methods are called by one sampler thread that
// has never run managed code. Between a Suspend that succeeded and its Resume
// they allocate nothing, take no lock that the suspended thread may own, and
// end in bounded time.
type Threads interface {
	// Claim makes the destruction of t wait until Release. It answers false,
	// and there is nothing to release, if t has been destroyed already.
	Claim(t Thread) bool
	Release(t Thread)
	// Prime makes one DoStackSnapshot of t, which is claimed and not suspended,
	// and returns how many callbacks it made. The CLR makes the per-thread
	// state of the sampler in its first call, under locks that a suspended
	// thread might own.
	Prime(t Thread) (callbacks int, hr HRESULT)
	// Suspend adds one to t's suspend count. The thread runs on until Context
	// has answered.
	Suspend(slot int, t Thread) SuspendStatus
	// Context completes the suspension, fills c.Regs, the bounds of c.Thread's
	// stack and then c.Loads, and copies the stack. It answers false if the thread
	// has no context any more; it must be resumed all the same.
	Context(slot int, c *Capture) bool
	// DoStackSnapshot walks the managed frames of slot's thread into c, from
	// c.Seed if c.Seeded.
	DoStackSnapshot(slot int, c *Capture)
	// Resume takes back what Suspend did.
	Resume(slot int, t Thread)
	// FunctionFromIP returns the method whose code holds ip.
	FunctionFromIP(ip uint64) (FunctionID, HRESULT)
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Pause waits while nothing is suspended.
	Pause(nanos int64)
}
