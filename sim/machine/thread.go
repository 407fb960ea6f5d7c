package machine

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/sim/image"
)

// region is a stack's memory: mem[0] is at low.
type region struct {
	low uint64
	mem []byte
}

// word returns the 8 bytes at addr, nil if they are not all in the region.
func (r *region) word(addr uint64) []byte {
	off := addr - r.low
	if n := uint64(len(r.mem)); n < 8 || off > n-8 {
		return nil
	}
	return r.mem[off : off+8]
}

// activation is a function that made a call, or was interrupted.
type activation struct {
	image  *image.Image
	fn     *image.Func
	state  State  // where it continues
	exact  bool   // it was interrupted
	signal uint64 // address of the kernel's or processor's frame that resumes it, if exact
}

// Thread is a running thread: its registers, its stack, and its activations, which are the truth
// about its frames. It is deterministic: two threads of the same seed with the same calls are
// equal. It is not safe for concurrent use.
type Thread struct {
	arch    image.Arch
	random  uint64
	stack   region
	alt     region
	state   State
	image   *image.Image
	fn      *image.Func
	at      int // index of the op at PC; -1: PC is at no op
	callers []activation
}

// New makes a thread with the stack [low,high). The stack and the registers contain random values
// that depend on seed only. Both bounds must be multiples of 16.
func New(a image.Arch, low, high uint64, seed uint64) *Thread {
	t := &Thread{arch: a, random: seed, at: -1, callers: make([]activation, 0, 12)}
	t.stack = t.region(low, high)
	for i := range t.state.R {
		t.state.R[i] = t.draw()
	}
	for i := range t.state.V {
		t.state.V[i] = [2]uint64{t.draw(), t.vectorHigh()}
	}
	t.state.R[a.SP()] = high
	return t
}

func (t *Thread) region(low, high uint64) region {
	r := region{low, make([]byte, max(high, low)-low)}
	for i := 0; i+8 <= len(r.mem); i += 8 {
		binary.LittleEndian.PutUint64(r.mem[i:], t.draw())
	}
	return r
}

// AltStack sets the stack for signals (sigaltstack). An empty range removes it.
func (t *Thread) AltStack(low, high uint64) { t.alt = t.region(low, high) }

// draw returns the next random number (splitmix64).
func (t *Thread) draw() uint64 {
	t.random += 0x9e3779b97f4a7c15
	z := t.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// vectorHigh is the high half of a new vector register; it is not preserved on
// ARM64.
func (t *Thread) vectorHigh() uint64 {
	if t.arch == image.ARM64 {
		return 0
	}
	return t.draw()
}

// CopyFrom makes t equal to src. It allocates only if t's storage is too small.
func (t *Thread) CopyFrom(src *Thread) {
	stack, alt, callers := t.stack.mem, t.alt.mem, t.callers
	*t = *src
	t.stack.mem = append(stack[:0], src.stack.mem...)
	t.alt.mem = append(alt[:0], src.alt.mem...)
	t.callers = append(callers[:0], src.callers...)
}

// rootRoom is the room above the entry of the thread's first function, in bytes. On Windows, the
// function may store its arguments there.
const rootRoom = 64

// Start makes f the thread's first function: return address 0, nothing above.
// It panics if the stack is too small for that.
func (t *Thread) Start(im *image.Image, f *image.Func) {
	t.callers = t.callers[:0]
	t.state.R[t.arch.SP()] = t.stack.low + uint64(len(t.stack.mem)) - rootRoom
	if !t.enter(im, f, 0) {
		panic("machine: no room on the stack")
	}
}

// enter makes f run with a return address. It returns false, and changes nothing, if the stack has
// no room for the address.
func (t *Thread) enter(im *image.Image, f *image.Func, ra uint64) bool {
	if t.arch == image.ARM64 {
		t.state.R[30] = ra
	} else {
		sp := &t.state.R[t.arch.SP()]
		if !t.put(*sp-8, ra) {
			return false
		}
		*sp -= 8
	}
	t.begin(im, f)
	return true
}

// begin moves the thread to f's first op.
func (t *Thread) begin(im *image.Image, f *image.Func) {
	t.image, t.fn, t.at = im, f, 0
	t.state.PC = im.Base + uint64(f.RVA)
}

// State returns the registers.
func (t *Thread) State() State { return t.state }

// Depth returns the number of frames: 1 in the first function, 0 after the thread's end.
func (t *Thread) Depth() int {
	if t.fn == nil {
		return len(t.callers)
	}
	return len(t.callers) + 1
}

// Op returns the op at PC and its part of the function. It returns nil if PC is at no op, as after
// a diverted return.
func (t *Thread) Op() (*image.Op, image.Part) {
	if t.fn == nil || t.at < 0 || t.at >= len(t.fn.Ops) {
		return nil, 0
	}
	op := &t.fn.Ops[t.at]
	return op, op.Part
}

// Func returns the running function and its image, or nil after a diverted return.
func (t *Thread) Func() (*image.Image, *image.Func) { return t.image, t.fn }

// Stack returns the bytes from SP to the stack's end, or the whole stack if SP is outside. They are
// not copied, so they change while the thread runs.
func (t *Thread) Stack() (addr uint64, live []byte) {
	sp := t.state.R[t.arch.SP()]
	for _, r := range [...]*region{&t.stack, &t.alt} {
		if off := sp - r.low; off < uint64(len(r.mem)) {
			return sp, r.mem[off:]
		}
	}
	return t.stack.low, t.stack.mem
}

// bytes returns the 8 bytes of memory at addr, nil if they are outside the stacks.
func (t *Thread) bytes(addr uint64) []byte {
	if b := t.stack.word(addr); b != nil {
		return b
	}
	return t.alt.word(addr)
}

// Word reads the word at addr. It returns false outside the stacks.
func (t *Thread) Word(addr uint64) (uint64, bool) {
	b := t.bytes(addr)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// Poke writes the word at addr. It does nothing outside the stacks.
func (t *Thread) Poke(addr, v uint64) { t.put(addr, v) }

func (t *Thread) put(addr, v uint64) bool {
	b := t.bytes(addr)
	if b == nil {
		return false
	}
	binary.LittleEndian.PutUint64(b, v)
	return true
}

// RunTo steps until cond holds, at most max times, and skips calls. It returns false if cond does
// not hold at the end, also because the thread cannot continue.
func (t *Thread) RunTo(cond func(*Thread) bool, max int) bool {
	for range max {
		if cond(t) {
			return true
		}
		switch t.Step() {
		case AtCall:
			t.Skip()
		case Ended, Faulted, Diverted:
			return cond(t)
		}
	}
	return cond(t)
}

// Truth appends the frames, leaf first, to out[:0] and returns it.
func (t *Thread) Truth(out []Frame) []Frame {
	out = out[:0]
	if t.fn != nil {
		out = append(out, Frame{t.image, t.fn, t.state, true})
	}
	for i := len(t.callers) - 1; i >= 0; i-- {
		c := &t.callers[i]
		out = append(out, Frame{c.image, c.fn, c.state, c.exact})
	}
	return out
}
