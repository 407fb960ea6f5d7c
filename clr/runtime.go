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

// CaptureStatus says what came of interrupting one thread.
type CaptureStatus uint8

const (
	CaptureNone     CaptureStatus = iota // not asked
	Captured                             // its context and stack are in the capture
	CaptureNoAnswer                      // it did not answer in time
	CaptureGone                          // it has ended
	CaptureForeign                       // it was on a stack that is not its own (an alternate signal stack)
)

var captureNames = [...]string{"none", "captured", "no-answer", "gone", "foreign-stack"}

func (s CaptureStatus) String() string {
	if int(s) < len(captureNames) {
		return captureNames[s]
	}
	return "capture?"
}

// Capture is what one interrupted thread left behind: registers, a bounded copy of
// its stack, and what DoStackSnapshot reported. All storage is preallocated by
// the Runtime; it stays valid until the slot is used again.
type Capture struct {
	Thread    Thread
	Status    CaptureStatus
	Truncated bool // the stack is larger than the slot; its outer end is missing
	Regs      context.AMD64
	Stack     memory.Run
	Seed      context.AMD64 // the registers of the top-most managed frame, if Seeded
	Seeded    bool          // DoStackSnapshot was given Seed
	Result    HRESULT       // of DoStackSnapshot
	Frames    []SnapshotFrame
	Full      bool // Frames had no room for every callback
}

// Runtime is a CLR in this process, real or simulated. Its methods are called
// by one sampler thread only. Between a successful SuspendRuntime and
// ResumeRuntime they allocate nothing, hold no thread by force, and end in
// bounded time.
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
	// Ask makes thread t copy its context and stack into slot; it does not wait.
	Ask(slot int, t Thread)
	// Await waits a bounded time for slot's copy and fills c, or takes the
	// question back: after it nothing writes to the slot.
	Await(slot int, c *Capture)
	// DoStackSnapshot walks the managed frames of slot's thread into c.
	DoStackSnapshot(slot int, c *Capture)
	// FunctionFromIP returns the method whose code holds ip. It may be called
	// outside the suspended window as well.
	FunctionFromIP(ip uint64) (FunctionID, HRESULT)
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Pause waits outside the suspended window.
	Pause(nanos int64)
}
