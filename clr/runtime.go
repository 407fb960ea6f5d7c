package clr

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
)

// SnapshotFrame is one callback of DoStackSnapshot as a recorder writes it:
// flat words, so that C can fill an array of them without entering Go.
//
// Saved holds the nonvolatile registers besides the frame pointer: on x86-64
// rbx, r12-r15, rsi, rdi; on ARM64 x19-x28. The last two of x86-64 are
// nonvolatile on Windows only: a recorder there says so in Saved[SavedMask].
type SnapshotFrame struct {
	Function FunctionID // 0: a marker, one block of unmanaged frames
	IP       uint64
	SP       uint64
	FP       uint64
	Saved    [10]uint64
}

// SavedMask is the word of Saved that says, on x86-64, which of rsi and rdi it
// holds: the value SavedWindows, or 0 for none.
const (
	SavedMask    = 7
	SavedWindows = 1<<context.RSI | 1<<context.RDI
)

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
	r.Known = saved | uint32(f.Saved[SavedMask]&SavedWindows)
	return r
}

// SetAMD64 makes the registers of f those of r. windows says whether rsi and
// rdi are nonvolatile.
func (f *SnapshotFrame) SetAMD64(r *context.AMD64, windows bool) {
	f.IP, f.SP, f.FP = r.RIP, r.SP(), r.FP()
	f.Saved = [10]uint64{r.GPR[context.RBX]}
	copy(f.Saved[1:5], r.GPR[context.R12:])
	if windows {
		f.Saved[5], f.Saved[6], f.Saved[SavedMask] = r.GPR[context.RSI], r.GPR[context.RDI], SavedWindows
	}
}

// ARM64 returns the registers of f for a walk of the frames below it. x30 is
// not among them: in the contexts the CLR reports it is the frame's own pc, and
// a frame that has made a call has its return address on the stack. d8-d15
// are unknown.
func (f *SnapshotFrame) ARM64() context.ARM64 {
	r := context.ARM64{PC: f.IP, Sp: f.SP, Known: 0x7ff << 19}
	r.X[29] = f.FP
	copy(r.X[19:29], f.Saved[:])
	return r
}

// SetARM64 makes the registers of f those of r.
func (f *SnapshotFrame) SetARM64(r *context.ARM64) {
	f.IP, f.SP, f.FP = r.PC, r.Sp, r.FP()
	copy(f.Saved[:], r.X[19:29])
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
// the Runtime; it stays valid until the slot is used again. Of the registers
// those of the target's architecture are filled.
type Capture struct {
	Thread    Thread
	Status    CaptureStatus
	Truncated bool // the stack is larger than the slot; its outer end is missing
	Regs      context.AMD64
	ARM64     context.ARM64
	Stack     memory.Run
	Seed      context.AMD64 // the registers of the top-most managed frame, if Seeded
	SeedARM64 context.ARM64
	Seeded    bool    // DoStackSnapshot was given the seed
	Result    HRESULT // of DoStackSnapshot
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
