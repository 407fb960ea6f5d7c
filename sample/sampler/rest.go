package sampler

import (
	"bytes"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/unwind"
)

// rest reads the callers of a stack that is larger than its copy. They are higher on the stack. The thread
// can change their return addresses only after it has returned to them.
type rest struct {
	stack   []byte        // a copy with the memory above it
	credit  time.Duration // how long walks with rests may still take
	updated time.Time     // when credit was last computed
	frames  []merge.Frame // of the first of two walks
}

// Bounds of rests.
const (
	MaxStack    = 64 << 20 // bytes of a copy with its rest
	restAtOnce  = 16 << 20 // bytes that are read at once if the end of the stack is known
	restFirst   = 4 << 20  // bytes of the first step if it is unknown; each further step doubles the stack
	restOverlap = 4 << 10  // bytes of the copy's end that are compared, at most
	restShare   = 4        // rests may take a quarter of the time, on average
	restCredit  = time.Second
)

// Rest is how reliable the rest of a stack is.
type Rest uint8

const (
	NoRest      Rest = iota // nothing was read, or the rest belongs to other calls
	RestRunning             // the thread may have run while the rest was read
	RestStopped             // the thread has not run while the rest was read
	RestSure                // the thread has not run since the copy
)

// endedAtCopy reports whether a walk may have ended because the copy ends before the stack. It sets c.Cut if
// that is so: the kernel's copy ends before a page that is not resident, such as one of a large buffer that
// has not been used yet, and does not report it. Code without unwind data is followed to its return, and the
// return address may be above the copy.
func (e *Base) endedAtCopy(c *walk.Capture, gap merge.Gap) bool {
	if gap != merge.GapTruncated && gap != merge.GapUnreadable && gap != merge.GapNoInfo {
		return false
	}
	end, sp := c.Stack.Addr+uint64(len(c.Stack.Data)), e.Walker.Regs.SP()
	if !c.Cut && end != c.High && c.Stack.Addr <= sp && sp <= end {
		var next [1]byte
		c.Cut = e.Target.Mem.ReadAt(next[:], end)
	}
	return c.Cut
}

// walkRest continues a walk that has ended with a gap at the end of a truncated copy. The callers are
// doubtful unless the rest is sure. If the thread may have run meanwhile, the rest is read and walked twice.
// The callers are dropped unless both walks have the same frames.
func (e *Base) walkRest(c *walk.Capture, frames []merge.Frame, gap merge.Gap,
	needs bool) ([]merge.Frame, merge.Gap, bool) {
	if gap == merge.GapUnreadable {
		gap = merge.GapTruncated
	}
	began, copied, first := time.Now(), c.Stack, gap
	if !e.rest.earn(began) {
		e.Stats.RestsSkipped++
		return frames, gap, needs
	}
	frames, gap, needs, read := e.walkOn(c, frames, needs)
	if read == NoRest {
		gap = first
	}
	kept := complete(gap) || read == RestSure
	if kept && read == RestRunning {
		e.rest.frames = append(e.rest.frames[:0], frames...)
		c.Stack, c.Cut = copied, true
		frames, _, needs = e.walkOnce(c)
		frames, gap, needs, read = e.walkOn(c, frames, needs)
		kept = read != NoRest && slices.Equal(frames, e.rest.frames)
	}
	if !kept {
		c.Stack, c.Cut = copied, true
		frames, gap, needs = e.walkOnce(c)
	}
	if read != RestSure {
		doubtLater(frames, copied.Addr+uint64(len(copied.Data)))
	}
	if len(c.Stack.Data) > len(copied.Data) {
		e.Stats.RestsRead++
	}
	e.rest.credit -= time.Since(began)
	return frames, gap, needs
}

// complete reports whether a walk with this gap has reached the end of the stack, or of what may be read.
func complete(gap merge.Gap) bool {
	return gap == merge.GapNone || gap == merge.GapLimit || gap == merge.GapTruncated
}

// walkOn reads more memory above a truncated copy and walks the whole stack again. It repeats this while the
// walk reaches the end of what was read. It returns the results of the last walk, and the worst Rest of the
// parts that were read.
func (e *Base) walkOn(c *walk.Capture, frames []merge.Frame, needs bool) (_ []merge.Frame, gap merge.Gap,
	_ bool, least Rest) {
	gap = merge.GapTruncated
	for gap == merge.GapTruncated && c.Cut {
		r := e.ReadsRest(c)
		if r == NoRest {
			break
		}
		if frames, gap, needs = e.walkOnce(c); least == NoRest || r < least {
			least = r
		}
	}
	return frames, gap, needs, least
}

// earn adds the credit of the time since the last call. It reports whether there is any credit.
func (r *rest) earn(now time.Time) bool {
	r.credit, r.updated = min(restCredit, r.credit+now.Sub(r.updated)/restShare), now
	return r.credit > 0
}

// AddRest appends the memory above c, or a part of it. sp is the thread's stack pointer, 0 if it is unknown
// because the thread runs. The rest belongs to c only if the end of c is still part of the stack and
// unchanged: the last frame of the last walk, and on x86-64 the return address to it. Otherwise AddRest
// returns false and leaves c as it is.
func (e *Base) AddRest(c *walk.Capture, sp uint64) bool {
	const returnAddress = 8
	copied := len(c.Stack.Data)
	from := max(int(e.Walker.Regs.SP()-returnAddress-c.Stack.Addr), copied-restOverlap)
	if from < 0 || from >= copied || sp > c.Stack.Addr+uint64(from) {
		return false
	}
	size := min(MaxStack, 2*copied+restFirst)
	if n := c.High - c.Stack.Addr; c.High > c.Stack.Addr && (n <= restAtOnce || n < uint64(size)) {
		size = int(n)
	} else if c.High > c.Stack.Addr && n > MaxStack {
		return false
	}
	if size <= copied || !e.still(c, from) {
		return false
	}
	if len(e.rest.stack) < size {
		e.rest.stack = append(make([]byte, 0, size), c.Stack.Data...)[:size]
	} else {
		copy(e.rest.stack, c.Stack.Data)
	}
	n := copied + e.Target.Mem.ReadSome(e.rest.stack[copied:size], c.Stack.Addr+uint64(copied))
	if n == copied || !e.still(c, from) {
		return false
	}
	c.Stack.Data, c.Cut = e.rest.stack[:n], n == size && c.Stack.Addr+uint64(n) != c.High
	return true
}

// still reports whether the copy in c is still in the process's memory from the given offset on.
func (e *Base) still(c *walk.Capture, from int) bool {
	var now [restOverlap]byte
	prev := c.Stack.Data[from:]
	n := e.Target.Mem.ReadSome(now[:len(prev)], c.Stack.Addr+uint64(from))
	return bytes.Equal(now[:n], prev)
}

// doubtLater marks the frames whose return addresses are above end. That memory was read after the sample.
// Meanwhile, the thread may have made other calls. The part below end need not show that: the frames of a
// recursion are the same for every caller.
func doubtLater(frames []merge.Frame, end uint64) {
	for i := range frames {
		if f := &frames[i]; f.SP > end && f.Kind != unwind.KindGap {
			f.Trust = f.Trust.Then(unwind.TrustLater)
		}
	}
}
