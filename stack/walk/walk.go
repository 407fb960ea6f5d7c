package walk

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// maxFrames bounds a stack. Most are below usualFrames, for which a Walker has room from the start.
const (
	maxFrames   = 1 << 15
	maxWalked   = 1 << 21 // frames of a walk that drops frames
	usualFrames = 1 << 9
)

// Capture is one copied stack.
type Capture struct {
	TID       uint32
	Regs      context.Registers
	Stack     memory.Run
	More      []memory.Run // further stacks that the thread uses
	Low, High uint64       // the stack's bounds; High 0 = unknown
	Cut       bool         // the copy ends before the stack does
	OneStack  bool         // the kernel copied at most 64 KB of one stack: there may be more stacks
	Partial   bool         // only sp and ip are known
	Called    bool         // ip is a return address: the thread was not interrupted
	Kernel    KernelState  // whether the thread was in the kernel
	Extra     []byte       // bytes of the runtime's Thread, copied at the same time
	Objects   []byte       // bytes of the managed heap, copied at the same time (package clr/tasks)
}

// KernelState is whether an interrupted thread was in the kernel.
type KernelState uint8

const (
	UserOnly      KernelState = iota // in user code: the clock cannot hit the kernel
	MaybeInKernel                    // in the kernel if the leaf is at a system call
	InKernel                         // in the kernel, blocked or running
)

// Walker walks captures with the tables of one process.
type Walker struct {
	Unmanaged       unwind.Walker
	Code            managedCode       // nil: no runtime is known
	HijackStub      uint64            // address that the runtime writes over return addresses; 0 = unknown
	Returns         uint64            // replaced return addresses that were corrected
	SkippedHandlers uint64            // handlers dropped because they were at their first instruction
	Special         *managed.Specials // nil: there are none
	// Unproven reports whether an address is in code of a runtime whose tables cannot be read. Unloaded
	// reports whether the code at an address may have been freed, and Missing, whether a core lacks memory
	// that describes it. All may be nil.
	Unproven, Unloaded, Missing func(ip uint64) bool
	Visit                       visit // called at each managed frame; may be nil
	MaxFrames                   int   // of a stack; New sets it to 32,768
	// DropsMiddle keeps the outermost callers of a stack with more than MaxFrames. Frames in the middle are
	// dropped, and a gap takes their place. Without DropsMiddle, the walk ends after MaxFrames.
	DropsMiddle bool

	restore   memory.Range          // see SetStubs
	goSymbols map[uint32][]goSymbol // by module, of those in incomplete stacks

	mem    memory.Window
	bounds unwind.Bounds
	block  [256]unwind.Frame
	out    []merge.Frame

	// State of the current walk.
	n                  int
	dropped            int          // frames in the middle
	steppedThroughStub bool         // the walk treated a stub as an ordinary called function
	ManagedFrames      bool         // the walk reached managed code
	at                 unwind.State // of Regs
	Regs               context.Registers
	from               context.Registers // before the current step
	left               unwind.Frame
}

// visit gets a managed frame, its number, its registers, and where its part of the stack ends. Registers
// that a call does not preserve are the frame's own only if it is exact.
type visit func(f *merge.Frame, i int, regs *context.Registers, end uint64, stack *memory.Window)

func New(a context.Arch) *Walker {
	return &Walker{Unmanaged: managed.NewWalker(a), out: make([]merge.Frame, usualFrames),
		goSymbols: map[uint32][]goSymbol{}, MaxFrames: maxFrames}
}

// SetStubs sets the address of the runtime's hijack stub (0 if unknown) and the result of
// managed.FindRestore. Once the stub is known, the walker stops guessing. A return address in newly mapped
// code looks like a hijacked one if a saved register next to it contains an address in managed code.
func (w *Walker) SetStubs(stub uint64, restore memory.Range) {
	w.HijackStub, w.restore = stub, restore
	if l, ok := w.Unmanaged.(interface{ SetReturnHooks([]unwind.ReturnHook) }); ok && stub != 0 {
		l.SetReturnHooks(managed.ListedReturnHooks())
	}
}

// Walk returns c's frames, valid until the next Walk, and why the walk ended. GapNone means a complete stack.
// needs is true if c is Partial and the walk ended at a value that c lacks. The caller then copies the
// thread's registers and walks again.
func (w *Walker) Walk(c *Capture) (frames []merge.Frame, gap merge.Gap, needs bool) {
	w.mem.Reset(c.Stack.Addr, c.Stack.Data)
	w.bounds = unwind.Bounds{Low: c.Low, High: c.High, Follow: true}
	if len(c.More) > 0 {
		w.mem, w.bounds = *memory.New(append(c.More, c.Stack)...), unwind.Bounds{Follow: true}
	}
	w.n, w.dropped, w.steppedThroughStub, w.ManagedFrames = 0, 0, false, false
	w.Regs.Copy(&c.Regs)
	w.at = unwind.Interrupted(&w.Regs)
	w.at.Exact = !c.Called
	if w.at.Exact && w.Special.Entered(w.Regs.IP()) {
		return w.end(merge.GapStubOnTop), merge.GapStubOnTop, false
	}
	if w.at.Exact && w.restore.Holds(w.Regs.IP()) {
		w.leaveRestore()
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
			return w.dropUnstarted(w.out[:w.n]), w.whole(), false
		case unwind.NoInfo:
			if w.stepPendingHijack(c) || w.stepUnread() {
				continue
			}
		}
		if n := w.untilGoRoot(); n > 0 {
			return w.out[:n], w.whole(), false
		}
		if gap = merge.GapOfStop(stop, c.Cut); stop == unwind.NoInfo {
			gap = w.whyNoInfo(w.at.Address().Lookup())
		}
		if w.steppedThroughStub {
			gap = merge.GapStubOnTop
		}
		return w.end(gap), gap, stop == unwind.Unreadable && c.Partial
	}
}

// whole returns the gap of a stack that was walked to its end: GapLimit if frames were dropped.
func (w *Walker) whole() merge.Gap {
	if w.dropped > 0 {
		return merge.GapLimit
	}
	return merge.GapNone
}

// whyNoInfo returns why the code at ip has no unwind data.
func (w *Walker) whyNoInfo(ip uint64) merge.Gap {
	switch {
	case w.Unproven != nil && w.Unproven(ip):
		return merge.GapUnproven
	case w.Unloaded != nil && !w.inNativeModule(ip) && w.Unloaded(ip):
		return merge.GapUnloaded
	}
	return merge.GapNoInfo
}

// Address returns where the last walk ended.
func (w *Walker) Address() unwind.Address { return w.at.Address() }

// Patched reports whether a stack contains the address that the runtime writes over return addresses.
func (w *Walker) Patched(stack *memory.Run) bool {
	if w.HijackStub == 0 {
		return false
	}
	words := stack.Data[min(-stack.Addr%8, uint64(len(stack.Data))):]
	for ; len(words) >= 8; words = words[8:] {
		if binary.LittleEndian.Uint64(words) == w.HijackStub {
			return true
		}
	}
	return false
}

// end adds the gap to an incomplete stack and returns the frames.
func (w *Walker) end(gap merge.Gap) []merge.Frame {
	w.put(merge.Frame{Kind: unwind.KindGap, Gap: gap, Module: -1, SP: w.Regs.SP()})
	return w.out[:w.n]
}

// dropUnstarted drops a signal handler that has not executed an instruction yet. If the timers of two
// profilers expire at the same tick, the kernel sets up the other's signal frame and ours on top of it: the
// thread is at the first instruction of the other's handler, whose return address is still on top of the
// stack. The thread's own work is below the signal frame.
func (w *Walker) dropUnstarted(frames []merge.Frame) []merge.Frame {
	for len(frames) > 2 && frames[0].Exact && frames[0].Kind == unwind.KindNative &&
		frames[1].Kind == unwind.KindSignal {
		if ra, ok := w.mem.Word(frames[0].SP); !ok || ra != frames[1].IP {
			break
		}
		frames = frames[2:]
		w.SkippedHandlers++
	}
	return frames
}

// native walks unmanaged frames.
func (w *Walker) native(c *Capture) unwind.Stop {
	prev := w.at
	w.from.Copy(&w.Regs)
	r := w.Unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:])
	n, stop := r.N, r.Stop
	if stop == unwind.NoInfo && n > 0 && w.block[n-1].Module < 0 && w.isManaged() {
		n, stop = n-1, unwind.Managed // code that is newer than the module table
	}
	if i, stub := w.Special.Misread(w.block[:n], w.at.Address()); i >= 0 {
		// Walk again, up to there.
		w.Regs.Copy(&w.from)
		w.at = prev
		n, stop = w.Unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:i+1]).N, unwind.StopNone
		if w.at.Exact = true; stub {
			w.steppedThroughStub, stop = true, unwind.BadInfo
		}
	}
	if i := w.returning(n); i >= 0 {
		w.Regs.Copy(&w.from)
		w.at = prev
		n, stop = w.Unmanaged.Walk(&w.at, &w.mem, &w.bounds, w.block[:i+1]).N, unwind.StopNone
		if ra, ok := w.restored(c.Extra); ok {
			w.Regs.ReturnTo(ra)
			w.at.Exact = false
			w.Returns++
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

// PendingReturn returns the registers of the caller of the hijack stub in which the last walk ended. RIP is
// the word in the return address's place, which the runtime may not have written yet.
func (w *Walker) PendingReturn() (to context.AMD64, ok bool) {
	u, ok := w.Unmanaged.(interface {
		HookReturn(*unwind.State, *memory.Window) (context.AMD64, bool)
	})
	if !ok {
		return to, false
	}
	return u.HookReturn(&w.at, &w.mem)
}

// stepPendingHijack steps out of a hijack stub that has not stored its return address yet. It takes the
// address from the runtime's Thread.
func (w *Walker) stepPendingHijack(c *Capture) bool {
	to, ok := w.PendingReturn()
	if !ok || w.Code == nil || w.Regs.Arch != context.ArchAMD64 {
		return false
	}
	if to.RIP, ok = w.Code.TrueReturn(c.Extra, to.SP()-8); !ok || to.SP() <= w.Regs.SP() ||
		w.bounds.High != 0 && to.SP() > w.bounds.High {
		return false
	}
	w.Regs, w.at.Exact = context.FromAMD64(to), false
	w.Returns++
	return true
}

// trueReturn replaces the hijack stub's address, to which the last frame returns, by the true return address.
// It reports whether that is known. On x86-64, its slot is the word below the caller's stack pointer.
func (w *Walker) trueReturn(c *Capture) bool {
	slot := w.Regs.SP() - 8
	if w.Regs.Arch == context.ArchARM64 {
		slot = w.Code.ReturnSlot()
	}
	ra, ok := w.Code.TrueReturn(c.Extra, slot)
	if !ok && slot == 0 {
		ra, ok = w.restored(c.Extra)
	}
	if ok {
		w.Regs.ReturnTo(ra)
		w.Returns++
	}
	return ok
}

// returning returns the index of the frame that returns to the hijack stub, or -1. On x86-64 it is always -1.
// On ARM64, the frame is the stub itself: a return enters the stub with the stub's address in x30, and the
// stub saves x30 before it learns the true address.
func (w *Walker) returning(n int) int {
	if w.Regs.Arch != context.ArchARM64 || w.HijackStub == 0 || w.Code == nil {
		return -1
	}
	for i := 1; i < n; i++ {
		if w.block[i].IP == w.HijackStub && !w.block[i].Exact {
			return i - 1
		}
	}
	if n > 0 && w.Regs.IP() == w.HijackStub && (!w.at.Exact || w.block[n-1].IP == w.HijackStub) {
		return n - 1 // at its first instruction, its own caller is the stub
	}
	return -1
}

// restored returns the true return address if an epilog has already loaded the stub's address into x30: the
// slot is then just below the stack pointer. extra is a copy of the runtime's Thread.
func (w *Walker) restored(extra []byte) (ra uint64, ok bool) {
	const frame = 4096 // the most that a method's epilog frees last
	for i := 8; i+8 <= len(extra); i += 8 {
		slot := binary.LittleEndian.Uint64(extra[i:])
		if slot < w.Regs.SP() && w.Regs.SP()-slot <= frame {
			if ra, ok = w.Code.TrueReturn(extra, slot); ok {
				return ra, ok
			}
		}
	}
	return 0, false
}

func (w *Walker) put(f merge.Frame) bool {
	if w.n >= w.MaxFrames-1 && f.Kind != unwind.KindGap && !w.dropMiddle() {
		return false
	}
	*w.add() = f
	return true
}

// dropMiddle makes room by dropping frames after the first half. A gap replaces them. It returns false if the
// frames must stay, because a visitor has their numbers, or if the stack has too many.
func (w *Walker) dropMiddle() bool {
	half, n := w.MaxFrames/2, w.MaxFrames/4
	if !w.DropsMiddle || w.Visit != nil || w.dropped >= maxWalked {
		return false
	}
	copy(w.out[half+1:], w.out[half+1+n:w.n])
	w.out[half] = merge.Frame{Kind: unwind.KindGap, Gap: merge.GapLimit, Module: -1, SP: w.out[half].SP}
	w.n -= n
	w.dropped += n
	return true
}

// add returns the next frame, to be set by the caller.
func (w *Walker) add() *merge.Frame {
	if w.n == len(w.out) {
		w.out = append(w.out, make([]merge.Frame, w.n)...)
	}
	w.n++
	return &w.out[w.n-1]
}

// Holds reports whether an address is on a copied stack.
func (c *Capture) Holds(at uint64) bool {
	if at-c.Stack.Addr < uint64(len(c.Stack.Data)) {
		return true
	}
	for _, r := range c.More {
		if at-r.Addr < uint64(len(r.Data)) {
			return true
		}
	}
	return false
}

// StoppedAt returns a thread's registers from the sp and ip that the kernel reports. The others are unknown.
func StoppedAt(a context.Arch, sp, ip uint64) context.Registers {
	g := context.Registers{Arch: a}
	g.AMD64.Known = 1 << context.RSP
	g.SetSP(sp)
	g.SetIP(ip)
	return g
}

// Sizes of a copy of a stack, bytes.
const (
	RedZone    = 128     // below sp that are a function's own (System V ABI)
	FirstStack = 1 << 16 // bytes copied at first: a stack is rarely large, a mapping is
)
