package suspended

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

const (
	maxRest   = int64(4 * time.Second)
	firstCopy = 1 << 20 // bytes of a stack copied at first
	maxCopy   = 64 << 20
	fewBytes  = 64 << 10 // bytes of a stack whose end is unknown
	maxTurns  = 3        // attempts for a thread that is in a stub
)

// winContext is a CONTEXT of winnt.h, which must be aligned.
type winContext struct {
	all     [contextSize + 16]byte
	aligned *[contextSize]byte
}

// CONTEXT's size, the offset of ContextFlags in it, and the requested parts: control, integer, and floating
// point registers.
const (
	contextSize    = 1232
	contextFlagsAt = 0x30
	contextFull    = 0x0010000b
	notSuspended   = ^uint32(0)
)

func newContext() *winContext {
	c := new(winContext)
	at := uintptr(unsafe.Pointer(&c.all[0]))
	c.aligned = (*[contextSize]byte)(unsafe.Pointer(&c.all[(16-at%16)%16]))
	return c
}

// poll samples a resting thread by its known stack. It stops another thread while its stack is copied.
func (e *Engine) poll(t *thread) {
	now := time.Now().UnixNano()
	passed := now - t.polled
	t.polled = now
	e.Stats.Polls++
	if c := t.spent(); t.rest && c != 0 && c == t.cycles {
		t.every = min(2*t.every, maxRest)
		t.due = now + t.every
		e.Stats.Rests++
		if !e.Config.NoWall {
			e.sendOf(t, merge.Gap(t.stack.Gap), t.stack.Frames, 0, passed)
		}
		return
	}
	t.rest = false
	t.every = e.Period
	t.due = now // of the next round
	t.unsampled += passed
	used, ok := t.used()
	if !ok || e.Config.NoWall && used == t.times {
		return
	}
	for range maxTurns {
		if gap, ok := e.sample(t); !ok {
			return
		} else if gap != merge.GapStubOnTop {
			break
		}
		e.seen.stubs++
		time.Sleep(time.Millisecond)
	}
	e.sent(t, used)
}

// sent sends e.Stream.Frames as a sample of a thread.
func (e *Engine) sent(t *thread, used uint64) {
	cpu, wall := used-min(used, t.times), t.unsampled
	t.times, t.unsampled = used, 0
	if e.Config.NoCPU {
		cpu = 0
	}
	if e.Config.NoWall {
		wall = int64(cpu)
	}
	t.rest, t.cycles = true, t.spent()
	gap := e.gap
	t.stack.Gap = uint8(gap)
	t.stack.Frames = append(t.stack.Frames[:0], e.Stream.Frames...)
	e.sendOf(t, gap, e.Stream.Frames, cpu, wall)
}

// sample stops a thread, copies its stack, resumes it, and walks the copy.
func (e *Engine) sample(t *thread) (merge.Gap, bool) {
	if t.high == 0 {
		e.bounds(t)
	}
	var c walk.Capture
	if !e.copy(t, &c) {
		return 0, false
	}
	if c.Cut && len(e.bytes) < maxCopy {
		e.bytes = make([]byte, min(4*len(e.bytes), maxCopy))
	}
	if mark, ok := e.mem.Mark(); !ok || mark != e.mark {
		e.Stats.Changed++ // the table is older or newer than the copy
		e.reread()
		return 0, false
	}
	gap, _, ok := e.Walk(&c)
	e.gap = gap
	return gap, ok
}

// copy is the time in which a thread is stopped. Only system calls may be made here: if this thread gets
// stuck, the target's thread stays stopped.
func (e *Engine) copy(t *thread, c *walk.Capture) (ok bool) {
	began := ticks()
	if e.file != nil {
		e.file.SetSuspended(t.tid)
		defer e.file.SetSuspended(0)
	}
	if n, _, _ := suspendThread.Call(uintptr(t.handle)); uint32(n) == notSuspended {
		return false // the thread has ended
	} else if n > 0 {
		e.seen.held++
	}
	ok = e.capture(t, c)
	windows.ResumeThread(t.handle)
	e.seen.suspended++
	e.Stats.Handler.Add(uint64(float64(ticks()-began) * 1e9 / float64(e.rate)))
	if ok {
		e.Stats.Outside++
	}
	return ok
}

// capture copies registers, stack, and Thread of a stopped thread.
func (e *Engine) capture(t *thread, c *walk.Capture) bool {
	b := e.context.aligned
	*(*uint32)(unsafe.Pointer(&b[contextFlagsAt])) = contextFull
	if done, _, _ := getThreadContext.Call(uintptr(t.handle), uintptr(unsafe.Pointer(b))); done == 0 {
		return false
	}
	regs, err := context.Read(context.Win32AMD64, b[:])
	if err != nil {
		return false
	}
	c.TID, c.Regs = t.tid, regs
	sp := regs.SP()
	if !t.holds(sp) {
		e.bounds(t) // of a fiber
	}
	n := 0
	if t.holds(sp) {
		c.Low, c.High = t.low, t.high
		size := min(t.high-sp, uint64(len(e.bytes)))
		c.Cut = size < t.high-sp
		n = e.mem.ReadSome(e.bytes[:size], sp)
	} else {
		e.Stats.Foreign++
		c.Cut = true
		n = e.mem.ReadSome(e.bytes[:fewBytes], sp)
	}
	if c.Stack = (memory.Run{Addr: sp, Data: e.bytes[:n]}); n == 0 {
		e.Stats.Unreadable++
		return false
	}
	if t.object != 0 {
		c.Extra = e.Extra[:e.mem.ReadSome(e.Extra[:], t.object)]
	}
	return true
}

// LookAt leaves the stack of a thread in e.Stream.Frames.
func (e *Engine) LookAt(tid uint32) (merge.Gap, bool) {
	t := e.threads[tid]
	if t == nil {
		return 0, false
	}
	return e.sample(t)
}

// WalkLater would walk held samples. There are none on Windows: a readable runtime needs no verification
// there.
func (e *Engine) WalkLater(*sampler.Sample) {}

// Resting returns the last sample of a thread that has rested since.
func (e *Engine) Resting(tid uint32) (stream.Held, bool) {
	if t := e.threads[tid]; t != nil && t.rest && t.spent() == t.cycles {
		return t.stack, true
	}
	return stream.Held{}, false
}
