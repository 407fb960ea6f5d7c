package clr

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
)

// SnapshotFrame is one callback of DoStackSnapshot as a recorder writes it: flat words, so that C can fill an
// array of them without entering Go.
//
// Saved holds the nonvolatile registers except the frame pointer: on x86-64 rbx, r12-r15, rsi, rdi; on ARM64
// x19-x28. rsi and rdi are nonvolatile on Windows only: a recorder there marks them in Saved[SavedMask].
type SnapshotFrame struct {
	Function FunctionID // 0: a marker, one block of unmanaged frames
	IP       uint64
	SP       uint64
	FP       uint64
	Saved    [10]uint64
}

// SavedMask is the index of the word of Saved that marks, on x86-64, whether rsi and rdi are valid:
// SavedWindows, or 0 if not.
const (
	SavedMask    = 7
	SavedWindows = 1<<context.RSI | 1<<context.RDI
)

// Marker reports whether f represents a block of unmanaged frames.
func (f *SnapshotFrame) Marker() bool { return f.Function == 0 }

// Registers returns the registers of f, for architecture a, for a walk of the frames below it.
func (f *SnapshotFrame) Registers(a context.Arch) (r context.Registers) {
	r.Arch = a
	f.Load(&r)
	return r
}

// Load sets r's registers from f; r.Arch is their architecture.
func (f *SnapshotFrame) Load(r *context.Registers) {
	switch r.Arch {
	case context.ArchAMD64:
		f.amd64(&r.AMD64)
	case context.ArchARM64:
		f.arm64(&r.ARM64)
	}
}

// Store sets the registers of f from r. windows means that rsi and rdi of x86-64 are nonvolatile.
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

// arm64 sets r to the registers of the frame, without x30 and d8-d15. The CLR reports x30 as the frame's own
// pc, which is of no use: a frame that has made a call has its return address on the stack. The CLR does not
// report d8-d15.
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

// CaptureStatus is the result of interrupting one thread.
type CaptureStatus uint8

const (
	CaptureNone     CaptureStatus = iota // not requested
	Captured                             // its context and stack are in the capture
	CaptureNoAnswer                      // it did not answer in time
	CaptureGone                          // it has ended
	CaptureForeign                       // it was on a stack other than its own (an alternate signal stack)
	CaptureLate                          // it got no processor yet: its copy comes after the suspension
)

var captureNames = [...]string{"none", "captured", "no-answer", "gone", "foreign-stack", "late"}

func (s CaptureStatus) String() string {
	if int(s) < len(captureNames) {
		return captureNames[s]
	}
	return "capture?"
}

// Capture holds the data of one interrupted thread: registers, a bounded copy of its stack, and the report of
// DoStackSnapshot. The Runtime preallocates all storage; it is valid until the slot is reused.
type Capture struct {
	Thread     Thread
	Status     CaptureStatus
	Truncated  bool // the stack is larger than the slot; its outer end is missing
	Regs       context.Registers
	Stack      memory.Run
	Below      memory.Run        // on the thread's own stack, if Stack is an alternate one
	Seed       context.Registers // the registers of the top-most managed frame, if Seeded
	Seeded     bool              // the seed was passed to DoStackSnapshot
	Result     HRESULT           // of DoStackSnapshot
	Frames     []SnapshotFrame
	Full       bool   // Frames had no room for every callback
	Redirected bool   // the runtime redirected the thread: a seeder checks a managed ip on top too
	Loading    bool   // the thread is in the system's loader: DoStackSnapshot was not called
	Broken     bool   // the thread was resumed during the walk, because it had been suspended too long
	Loads      uint64 // the loader's count of changes when the registers were captured; 0: not counted
	Wake       Wake   // whether the end of the suspension woke the thread
}

// Wake is whether the end of the suspension wakes a waiting thread.
type Wake uint8

const (
	WakeUnknown Wake = iota // it does not wait, or this was not checked
	WakeNot                 // it continues to wait
	Woken                   // it waited for the end of the suspension
)

// Runtime is a CLR in this process, real or simulated. One sampler thread calls its methods. Between a
// successful SuspendRuntime and ResumeRuntime they allocate nothing, suspend no single thread, and end in
// bounded time.
type Runtime interface {
	// SuspendRuntime stops all managed threads (ICorProfilerInfo10).
	SuspendRuntime() HRESULT
	// ResumeRuntime undoes one successful SuspendRuntime.
	ResumeRuntime() HRESULT
	// Enter is called after the runtime is suspended, and Leave before it is resumed. In between, the
	// destruction of a thread waits.
	Enter()
	Leave()
	// Alive reports whether the thread has not been destroyed. Between Enter and Leave, a true result stays
	// true.
	Alive(t Thread) bool
	// Ask makes thread t copy its context and stack into slot, and returns at once.
	Ask(slot int, t Thread)
	// Await waits a bounded time for slot's copy and fills c, or withdraws the request: afterwards nothing
	// writes to the slot. If the thread has not run since Ask, and cannot run before it makes its copy, Await
	// may return CaptureLate. Then Late must follow.
	Await(slot int, c *Capture)
	// Late does the rest of an Await that returned CaptureLate, after ResumeRuntime.
	Late(slot int, c *Capture)
	// DoStackSnapshot walks the managed frames of slot's thread into c.
	DoStackSnapshot(slot int, c *Capture)
	// FunctionFromIP returns the method whose code contains ip. It may also be called outside the suspended
	// window.
	FunctionFromIP(ip uint64) (FunctionID, HRESULT)
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Pause waits outside the suspended window.
	Pause(nanos int64)
}
