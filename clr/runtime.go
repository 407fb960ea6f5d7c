package clr

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
)

// SnapshotFrame is one callback of DoStackSnapshot as a recorder writes it:
// flat words, so that C can fill an array of them without entering Go.
//
// Saved holds the nonvolatile registers besides the frame pointer: on x86-64
// rbx, r12-r15, rsi, rdi (the last two on Windows only); on ARM64 x19-x28.
type SnapshotFrame struct {
	Function FunctionID // 0: a marker, one block of unmanaged frames
	IP       uint64
	SP       uint64
	FP       uint64
	Saved    [10]uint64
}

// Marker reports whether f stands for a block of unmanaged frames.
func (f *SnapshotFrame) Marker() bool { return f.Function == 0 }

// AMD64 returns the registers of f for a walk of the frames below it.
func (f *SnapshotFrame) AMD64() context.AMD64 {
	var r context.AMD64
	r.RIP = f.IP
	r.GPR[context.RSP], r.GPR[context.RBP] = f.SP, f.FP
	r.GPR[context.RBX] = f.Saved[0]
	copy(r.GPR[context.R12:], f.Saved[1:5])
	r.GPR[context.RSI], r.GPR[context.RDI] = f.Saved[5], f.Saved[6]
	const saved = 1<<context.RSP | 1<<context.RBP | 1<<context.RBX | 0xf<<context.R12
	r.Known = saved
	return r
}

// Thread is a thread that may be sampled. The stack is [StackLow, StackHigh).
type Thread struct {
	ID        ThreadID
	TID       uint64 // kernel thread id
	StackLow  uint64
	StackHigh uint64
}

// HoldStatus says what came of stopping one thread.
type HoldStatus uint8

const (
	HoldNone     HoldStatus = iota // not asked
	Held                           // stopped; its context and stack are in the capture
	HoldNoAnswer                   // it did not stop in time
	HoldGone                       // it has ended
	HoldForeign                    // stopped on a stack that is not its own (an alternate signal stack)
	HoldExpired                    // it was let go before the sample was complete: time limit
)

var holdNames = [...]string{"none", "held", "no-answer", "gone", "foreign-stack", "expired"}

func (s HoldStatus) String() string {
	if int(s) < len(holdNames) {
		return holdNames[s]
	}
	return "hold?"
}

// Capture is what one stopped thread left behind: registers, a bounded copy of
// its stack, and what DoStackSnapshot reported. All storage is preallocated by
// the Runtime; it stays valid until the slot is used again.
type Capture struct {
	Thread    Thread
	Status    HoldStatus
	Truncated bool // the stack is larger than the slot; its outer end is missing
	Regs      context.AMD64
	Stack     memory.Run
	Result    HRESULT // of DoStackSnapshot
	Frames    []SnapshotFrame
	Full      bool // Frames had no room for every callback
}

// Runtime is a CLR in this process, real or simulated. Its methods are called
// by one sampler thread only. Between a successful SuspendRuntime and
// ResumeRuntime they allocate nothing, take no lock that a held thread could
// own, and end in bounded time.
type Runtime interface {
	// SuspendRuntime stops all managed threads (ICorProfilerInfo10).
	SuspendRuntime() HRESULT
	// ResumeRuntime undoes one successful SuspendRuntime.
	ResumeRuntime() HRESULT
	// Enter is called once the runtime is suspended and Leave before it is
	// resumed: the destruction of a thread waits in between.
	Enter()
	Leave()
	// Alive reports whether the thread has not been destroyed; between Enter
	// and Leave the answer stays true once it was.
	Alive(t Thread) bool
	// Hold asks thread t to stop and be captured in slot; it does not wait.
	Hold(slot int, t Thread)
	// Await waits for slot's thread to have stopped, a bounded time.
	Await(slot int, c *Capture)
	// DoStackSnapshot walks the managed frames of slot's thread into c.
	DoStackSnapshot(slot int, c *Capture)
	// Release lets slot's thread run on, and takes back a Hold that was not
	// answered. It corrects c.Status if the hold had expired.
	Release(slot int, c *Capture)
	// FunctionFromIP returns the method whose code holds ip. It may be called
	// outside the suspended window as well.
	FunctionFromIP(ip uint64) (FunctionID, HRESULT)
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Pause waits outside the suspended window.
	Pause(nanos int64)
}
