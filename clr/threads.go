package clr

// SuspendStatus is the result of suspending one thread.
type SuspendStatus uint8

const (
	Suspended     SuspendStatus = iota // the count was incremented; the thread may still run until Context
	SuspendGone                        // the thread has ended
	SuspendDenied                      // access denied
)

var suspendNames = [...]string{"suspended", "gone", "denied"}

func (s SuspendStatus) String() string {
	if int(s) < len(suspendNames) {
		return suspendNames[s]
	}
	return "suspend?"
}

// Threads is a CLR in this process whose threads are suspended one at a time: Windows, real or simulated. One
// sampler thread that has never run managed code calls its methods. Between a successful Suspend and its
// Resume they allocate nothing, take no lock that the suspended thread may own, and end in bounded time.
type Threads interface {
	// Claim makes the destruction of t wait until Release. It returns false if t has already been destroyed;
	// then Release must not be called.
	Claim(t Thread) bool
	Release(t Thread)
	// Prime calls DoStackSnapshot once for t, which is claimed and not suspended, and returns the number of
	// callbacks. In its first call the CLR sets up per-thread state of the sampler, under locks that a
	// suspended thread might own.
	Prime(t Thread) (callbacks int, hr HRESULT)
	// Suspend increments t's suspend count. The thread may run until Context has returned.
	Suspend(slot int, t Thread) SuspendStatus
	// Context completes the suspension, fills c.Regs, the bounds of c.Thread's stack, and then c.Loads, and
	// copies the stack. It returns false if the thread no longer has a context; it must be resumed anyway.
	Context(slot int, c *Capture) bool
	// DoStackSnapshot walks the managed frames of slot's thread into c, from
	// c.Seed if c.Seeded.
	DoStackSnapshot(slot int, c *Capture)
	// Resume undoes Suspend.
	Resume(slot int, t Thread)
	// FunctionFromIP returns the method whose code contains ip.
	FunctionFromIP(ip uint64) (FunctionID, HRESULT)
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Pause waits while nothing is suspended.
	Pause(nanos int64)
}
