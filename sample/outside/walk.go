package outside

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// maxFrames bounds a stack.
const maxFrames = 1 << 15

// capture is one copied stack.
type capture struct {
	tid       uint32
	regs      context.Registers
	stack     memory.Run
	more      []memory.Run // further stacks that the thread stands on
	low, high uint64       // the stack's bounds, high 0 = not known
	cut       bool         // the copy ends before the stack does
	oneStack  bool         // the kernel copied at most 64 KB of one stack: there may be more
	partial   bool         // of the registers only sp and ip are known
	called    bool         // ip is where a call returns to: the thread was not interrupted
	kernel    kernelState  // whether the thread was in the kernel
	extra     []byte       // of the runtime's Thread, at the time of the copy
}

// walker walks captures by the tables of one process.
type walker struct {
	unmanaged       unwind.Walker
	code            managedCode          // nil: no runtime is known
	hijackStub      uint64               // what the runtime writes over return addresses; 0 = not known
	returns         uint64               // replaced return addresses that were set right
	skippedHandlers uint64               // frames of handlers that had not executed an instruction yet
	special         *managed.Specials    // nil: there are none
	unproven        func(ip uint64) bool // whether an address is in code of a runtime that cannot be read

	mem    memory.Window
	bounds unwind.Bounds
	block  [256]unwind.Frame
	out    []merge.Frame

	// The walk under way.
	n             int
	misread       bool         // it left a special as if that had been called
	managedFrames bool         // it met code of the runtime's
	at            unwind.State // of regs
	regs          context.Registers
	from          context.Registers // before a step under way
	left          unwind.Frame
}

func newWalker(a context.Arch) *walker {
	return &walker{unmanaged: managed.NewWalker(a), out: make([]merge.Frame, maxFrames)}
}

// returnsBy tells where the runtime's hijack stub is, 0 = not known. One that is known by
// its code is not guessed any more: a return address in code that is newer than the module
// table would else be taken for its doing, if what has been pushed before it, a register
// that holds an address in managed code, looks like one.
func (w *walker) returnsBy(stub uint64) {
	w.hijackStub = stub
	if l, ok := w.unmanaged.(interface{ SetReturnHooks([]unwind.ReturnHook) }); ok && stub != 0 {
		l.SetReturnHooks(managed.ListedReturnHooks())
	}
}

// walk writes c's frames to w.out[:n] and says why it ended; GapNone is a whole
// stack. needs says that a register was missing which the thread itself has.
func (w *walker) walk(c *capture) (frames []merge.Frame, gap merge.Gap, needs bool) {
	w.mem.Reset(c.stack.Addr, c.stack.Data)
	w.bounds = unwind.Bounds{Low: c.low, High: c.high, Follow: true}
	if len(c.more) > 0 {
		w.mem, w.bounds = *memory.New(append(c.more, c.stack)...), unwind.Bounds{Follow: true}
	}
	w.n, w.misread, w.managedFrames = 0, false, false
	w.regs.Copy(&c.regs)
	w.at = unwind.Interrupted(&w.regs)
	w.at.Exact = !c.called
	if w.at.Exact && w.special.Entered(w.regs.IP()) {
		return w.end(merge.GapStubOnTop), merge.GapStubOnTop, false
	}
	for {
		stop := w.native(c)
		if stop == unwind.Managed {
			stop = w.managed(c)
		}
		switch stop {
		case unwind.StopNone:
			continue
		case unwind.EndOfStack:
			return w.begun(w.out[:w.n]), merge.GapNone, false
		case unwind.NoInfo:
			if w.stepPendingHijack(c) {
				continue
			}
		}
		gap = merge.GapOfStop(stop, c.cut)
		if stop == unwind.NoInfo && w.unproven != nil && w.unproven(w.regs.IP()) {
			gap = merge.GapUnproven
		}
		if w.misread {
			gap = merge.GapStubOnTop
		}
		return w.end(gap), gap, stop == unwind.Unreadable && c.partial
	}
}

// patched reports whether a word of a stack is the address that the runtime writes over
// return addresses.
func (w *walker) patched(stack *memory.Run) bool {
	if w.hijackStub == 0 {
		return false
	}
	words := stack.Data[min(-stack.Addr%8, uint64(len(stack.Data))):]
	for ; len(words) >= 8; words = words[8:] {
		if binary.LittleEndian.Uint64(words) == w.hijackStub {
			return true
		}
	}
	return false
}

// end closes a stack that is not whole.
func (w *walker) end(gap merge.Gap) []merge.Frame {
	w.put(merge.Frame{Kind: unwind.KindGap, Gap: gap, Module: -1, SP: w.regs.SP()})
	return w.out[:w.n]
}

// begun leaves out a signal handler that has not begun. Where the timers of two profilers
// expire at the same tick, the kernel makes the other's frame and then ours on it: the
// thread stands at the first instruction of the other's handler, whose return address is
// still on top of the stack. What it did is below the signal's frame.
func (w *walker) begun(frames []merge.Frame) []merge.Frame {
	for len(frames) > 2 && frames[0].Exact && frames[0].Kind == unwind.KindNative && frames[1].Kind == unwind.KindSignal {
		if ra, ok := w.mem.Word(frames[0].SP); !ok || ra != frames[1].IP {
			break
		}
		frames = frames[2:]
		w.skippedHandlers++
	}
	return frames
}

// native walks unmanaged frames.
func (w *walker) native(c *capture) unwind.Stop {
	was := w.at
	w.from.Copy(&w.regs)
	r := w.unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:])
	n, stop := r.N, r.Stop
	if stop == unwind.NoInfo && n > 0 && w.block[n-1].Module < 0 && w.isManaged() {
		n, stop = n-1, unwind.Managed // code that is newer than the module table
	}
	if i, stub := w.special.Misread(w.block[:n], w.at.Address()); i >= 0 {
		// Once more, up to there.
		w.regs.Copy(&w.from)
		w.at = was
		n, stop = w.unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:i+1]).N, unwind.StopNone
		if w.at.Exact = true; stub {
			w.misread, stop = true, unwind.BadInfo
		}
	}
	if i := w.returning(n); i >= 0 {
		w.regs.Copy(&w.from)
		w.at = was
		n, stop = w.unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:i+1]).N, unwind.StopNone
		if ra, ok := w.restored(c.extra); ok {
			w.regs.ReturnTo(ra)
			w.at.Exact = false
			w.returns++
		} else {
			stop = unwind.BadInfo
		}
	}
	for i := range w.block[:n] {
		if !w.put(merge.Unmanaged(&w.block[i])) {
			return unwind.Limit
		}
	}
	if stop == unwind.BufferFull || stop == unwind.Limit {
		return unwind.StopNone
	}
	return stop
}

// pendingReturn is where the stub leads in which the last walk has ended because nobody knew
// of code there. What its return address is may still have to be written.
func (w *walker) pendingReturn() (to context.AMD64, ok bool) {
	u, ok := w.unmanaged.(interface {
		HookReturn(*unwind.State, *memory.Window) (context.AMD64, bool)
	})
	if !ok {
		return to, false
	}
	return u.HookReturn(&w.at, &w.mem)
}

// stepPendingHijack leaves a hijack stub before the runtime has written its return address, by
// what the thread says it is.
func (w *walker) stepPendingHijack(c *capture) bool {
	to, ok := w.pendingReturn()
	if !ok || w.code == nil || w.regs.Arch != context.ArchAMD64 {
		return false
	}
	if to.RIP, ok = w.code.TrueReturn(c.extra, to.SP()-8); !ok || to.SP() <= w.regs.SP() || w.bounds.High != 0 && to.SP() > w.bounds.High {
		return false
	}
	w.regs, w.at.Exact = context.FromAMD64(to), false
	w.returns++
	return true
}

// least is by how much a stack pointer rises from a frame to its caller: on x86-64 by
// the return address.
func (w *walker) least(exact bool) uint64 {
	switch {
	case w.regs.Arch == context.ArchAMD64:
		return 8
	case exact:
		return 0
	}
	return 16
}

// trueReturn puts the true return address in the place of the hijack stub's, to which
// the frame that was left last returns. On x86-64 it stood below the stack pointer.
func (w *walker) trueReturn(c *capture) bool {
	slot := w.regs.SP() - 8
	if w.regs.Arch == context.ArchARM64 {
		slot = w.code.ReturnSlot()
	}
	ra, ok := w.code.TrueReturn(c.extra, slot)
	if !ok && slot == 0 {
		ra, ok = w.restored(c.extra)
	}
	if ok {
		w.regs.ReturnTo(ra)
		w.returns++
	}
	return ok
}

// returning is the index of the frame of a walk that returns to the hijack stub, -1 if
// none does. On ARM64 it is the stub's own: it is entered by a return, with its own
// address in x30, and saves that before it learns the true one.
func (w *walker) returning(n int) int {
	if w.regs.Arch != context.ArchARM64 || w.hijackStub == 0 || w.code == nil {
		return -1
	}
	for i := 1; i < n; i++ {
		if w.block[i].IP == w.hijackStub && !w.block[i].Exact {
			return i - 1
		}
	}
	if n > 0 && w.regs.IP() == w.hijackStub && (!w.at.Exact || w.block[n-1].IP == w.hijackStub) {
		return n - 1 // at its first instruction its own caller is the stub itself
	}
	return -1
}

// restored is the true return address where an epilog has read the stub's into its
// register already: the slot lies in the frame that it leaves.
func (w *walker) restored(extra []byte) (ra uint64, ok bool) {
	const frame = 4096 // what a method's epilog frees last
	for i := 8; i+8 <= len(extra); i += 8 {
		slot := binary.LittleEndian.Uint64(extra[i:])
		if slot < w.regs.SP() && w.regs.SP()-slot <= frame {
			if ra, ok = w.code.TrueReturn(extra, slot); ok {
				return ra, ok
			}
		}
	}
	return 0, false
}

// isManaged asks the runtime's tables about the ip.
func (w *walker) isManaged() bool {
	if w.code == nil {
		return false
	}
	_, ok := w.code.Function(w.at.Address())
	return ok
}

// managed steps over managed frames, one after the other.
func (w *walker) managed(c *capture) unwind.Stop {
	if w.code == nil {
		return unwind.NoInfo
	}
	w.managedFrames = true
	for {
		trust := w.at.Trust
		if trust == unwind.TrustOutside {
			w.at.Trust = unwind.TrustCLR // in no module, but in the tables, or the step fails
		}
		f, was := &w.left, w.at
		w.from.Copy(&w.regs)
		stop := w.code.Step(&w.at, &w.mem, &w.bounds, f)
		if stop != unwind.StopNone && stop != unwind.EndOfStack {
			w.at.Trust = trust
			return stop
		}
		if stop == unwind.StopNone && (w.regs.SP() < w.from.SP()+w.least(was.Exact) || w.bounds.High != 0 && w.regs.SP() > w.bounds.High) {
			w.regs.Copy(&w.from)
			w.at = was
			return unwind.NoProgress
		}
		g := merge.Frame{IP: f.IP, SP: f.SP, FP: f.FP, Module: -1, Kind: f.Kind, Trust: was.Trust, Exact: f.Exact}
		g.Function, _ = w.code.Function(g.Address())
		if !w.put(g) {
			return unwind.Limit
		}
		if stop == unwind.EndOfStack {
			return stop
		}
		if w.regs.IP() == w.hijackStub && w.hijackStub != 0 && !w.trueReturn(c) {
			return unwind.BadInfo
		}
		if !w.isManaged() {
			return unwind.StopNone
		}
	}
}

func (w *walker) put(f merge.Frame) bool {
	if w.n >= len(w.out)-1 && f.Kind != unwind.KindGap {
		return false
	}
	w.out[w.n] = f
	w.n++
	return true
}
