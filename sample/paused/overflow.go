package paused

import (
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/unwind"
)

// signalFrame is what the kernel stores when it interrupts a thread for a signal.
type signalFrame struct {
	regs    context.Registers // of the interrupted code
	signal  uint32
	address uint64 // of a fault
}

const (
	sigsegv = 11
	page    = 4096
)

// Most frames and bytes of a signal handler's stack that are searched for a signal frame's address.
const (
	maxHandlerFrames = 64
	maxHandlerStack  = 64 << 10
)

// interrupted finds the signal frame of a handler that has switched to a stack of its own, as the CLR's does
// after a stack overflow. The unwind information of that switch finds the interrupted code, but its stack
// pointer is on the handler's stack. The functions of the handler keep the address of the signal's ucontext.
// interrupted returns the frame of the interrupted code, -1 if no such handler runs.
func (s *Process) interrupted(c *walk.Capture, frames []merge.Frame, gap merge.Gap) (at int, f signalFrame) {
	frames = frames[:min(len(frames), maxHandlerFrames)]
	own := memory.Range{Start: c.Stack.Addr, End: c.Stack.End()}
	leaves := func(f merge.Frame) bool { return !own.Holds(f.SP) }
	if gap == merge.GapNone && !slices.ContainsFunc(frames, leaves) || !own.Holds(c.Regs.SP()) ||
		!s.unchanged(c) {
		return -1, f
	}
	b := c.Stack.Data[c.Regs.SP()-c.Stack.Addr:]
	tried := map[uint64]bool{}
	for b = b[:min(len(b), maxHandlerStack)]; len(b) >= 8; b = b[8:] {
		p := binary.LittleEndian.Uint64(b)
		if p%16 != 0 || own.Holds(p) || tried[p] || s.target.Mapping(p) == nil {
			continue
		}
		tried[p] = true
		if f, ok := s.signalFrame(p, c.Regs.Arch); ok {
			same := func(g merge.Frame) bool {
				return g.Kind != unwind.KindGap && g.IP == f.regs.IP() && g.SP != f.regs.SP()
			}
			if i := slices.IndexFunc(frames, same); i > 0 {
				return i, f
			}
		}
	}
	return -1, f
}

// signalFrame reads the signal frame whose ucontext is at an address.
func (s *Process) signalFrame(at uint64, a context.Arch) (f signalFrame, ok bool) {
	layout, info := context.UContextAMD64, at+304
	if a == context.ArchARM64 {
		layout, info = context.UContextARM64, at-128
	}
	b, siginfo := make([]byte, layout.Size()), make([]byte, 24)
	if !s.target.Mem.ReadAt(b, at) || f.regs.Read(layout, b) != nil || !s.target.Mem.ReadAt(siginfo, info) {
		return f, false
	}
	f.signal, f.address = binary.LittleEndian.Uint32(siginfo), binary.LittleEndian.Uint64(siginfo[16:])
	return f, f.signal > 0 && f.signal <= 64
}

// resume replaces the frames from the interrupted one on by a walk from the registers that the signal frame
// holds. base is the thread pointer, 0 if unknown. If the new walk is not better, or the thread has moved,
// the frames stay. overflow reports whether the new walk is used and the signal handler handles a stack
// overflow.
func (s *Process) resume(c *walk.Capture, base uint64, frames []merge.Frame, gap merge.Gap) (
	_ []merge.Frame, _ merge.Gap, overflow bool) {
	at, f := s.interrupted(c, frames, gap)
	if at <= 0 {
		return frames, gap, false
	}
	own := walk.Capture{TID: c.TID, Regs: f.regs, Extra: c.Extra}
	own.Stack, own.Cut = s.copyStack(f.regs.SP(), base)
	handler, before := slices.Clone(frames[:at]), len(frames)-at
	rest, end := s.follow(&own)
	if len(rest) == 0 || end != merge.GapNone && (gap == merge.GapNone || len(rest) < before) ||
		!s.unchanged(c) {
		frames, gap = s.follow(c)
		return frames, gap, false
	}
	*c = own
	overflow = f.signal == sigsegv && s.Overflows(f.regs.SP(), f.address)
	return append(handler, rest...), end, overflow
}

// maxOver is how far the stack pointer of a full stack may be below the stack, in bytes.
const maxOver = 64 << 10

// stackAt returns the mapping of a stack by its stack pointer. A full stack begins above its stack pointer.
func (s *Process) stackAt(sp uint64) *live.Mapping {
	var b [1]byte
	for at := sp; at-sp < maxOver; at = (at + page) &^ (page - 1) {
		if m := s.target.Mapping(at); m != nil && s.target.Mem.ReadAt(b[:], at) {
			return m
		}
	}
	return nil
}

// Overflows reports whether an access at addr, with the stack pointer sp, failed because the stack is full.
// The limits are those of the CLR: one page below and above sp.
func (s *Process) Overflows(sp, addr uint64) bool {
	var b [1]byte
	return addr-(sp-page) < 2*page && !s.target.Mem.ReadAt(b[:], addr)
}
