package clr

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
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

// Registers returns those of f, of architecture a, for a walk of the frames
// below it.
func (f *SnapshotFrame) Registers(a context.Arch) (r context.Registers) {
	r.Arch = a
	f.Load(&r)
	return r
}

// Load makes r's registers those of f; r.Arch says of which architecture they
// are.
func (f *SnapshotFrame) Load(r *context.Registers) {
	switch r.Arch {
	case context.ArchAMD64:
		f.amd64(&r.AMD64)
	case context.ArchARM64:
		f.arm64(&r.ARM64)
	}
}

// Store makes the registers of f those of r. windows says whether rsi and rdi
// of x86-64 are nonvolatile.
func (f *SnapshotFrame) Store(r *context.Registers, windows bool) {
	f.IP, f.SP, f.FP, f.Saved = r.IP(), r.SP(), r.FP(), [10]uint64{}
	switch r.Arch {
	case context.ArchAMD64:
		f.saveAMD64(&r.AMD64, windows)
	case context.ArchARM64:
		copy(f.Saved[:], r.ARM64.X[19:29])
	}
}

func (f *SnapshotFrame) amd64(r *context.AMD64) {
	const saved = 1<<context.RSP | 1<<context.RBP | 1<<context.RBX | 0xf<<context.R12
	*r = context.AMD64{RIP: f.IP, Known: saved | uint32(f.Saved[SavedMask]&SavedWindows)}
	r.GPR[context.RSP], r.GPR[context.RBP] = f.SP, f.FP
	r.GPR[context.RBX] = f.Saved[0]
	copy(r.GPR[context.R12:], f.Saved[1:5])
	r.GPR[context.RSI], r.GPR[context.RDI] = f.Saved[5], f.Saved[6]
}

func (f *SnapshotFrame) saveAMD64(r *context.AMD64, windows bool) {
	f.Saved[0] = r.GPR[context.RBX]
	copy(f.Saved[1:5], r.GPR[context.R12:])
	if windows {
		f.Saved[5], f.Saved[6], f.Saved[SavedMask] = r.GPR[context.RSI], r.GPR[context.RDI], SavedWindows
	}
}

// arm64: x30 is not among the registers: in the contexts the CLR reports it is
// the frame's own pc, and a frame that has made a call has its return address on
// the stack. d8-d15 are unknown.
func (f *SnapshotFrame) arm64(r *context.ARM64) {
	*r = context.ARM64{PC: f.IP, Sp: f.SP, Known: 0x7ff << 19}
	r.X[29] = f.FP
	copy(r.X[19:29], f.Saved[:])
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
	Regs      context.Registers
	Stack     memory.Run
	Below     memory.Run        // of the thread's own stack, if Stack is an alternate one
	Seed      context.Registers // the registers of the top-most managed frame, if Seeded
	Seeded    bool              // DoStackSnapshot was given the seed
	Result    HRESULT           // of DoStackSnapshot
	Frames    []SnapshotFrame
	Full      bool   // Frames had no room for every callback
	Loading   bool   // the thread is in the system's loader: DoStackSnapshot was not asked
	Broken    bool   // the thread ran on while it was walked, since it had been held too long
	Loads     uint64 // how often the loader had changed the modules when the registers were taken; 0: nobody counts
	Wake      Wake   // what the end of the suspension did to what the thread waited at
}

// Wake says whether the end of the suspension wakes a thread that waits.
type Wake uint8

const (
	WakeUnknown Wake = iota // it does not wait, or nobody looked
	WakeNot                 // it goes on waiting
	Woken                   // it waited for just that
)

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
