package blocked

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// runtime finds the runtime's tables, which walks need to pass through managed code.
func (w *Watch) runtime(maps []live.Mapping) {
	if w.paused != nil {
		return
	}
	s := paused.New(context.Host(), w.mem, w.loader, maps)
	if found, _ := s.Runtime(); !found {
		return // the runtime may still be starting
	}
	s.Reread = func() []live.Mapping {
		if now, err := live.Maps(w.pid); err == nil && len(now) > 0 {
			return now
		}
		return maps
	}
	w.paused = s
}

// maxTries bounds the attempts to walk the whole stack of one wait. Until the runtime's tables are verified,
// walks do not pass through managed code.
const maxTries = 8

// whole walks the copy to the thread's base and joins it to the event's addresses. It returns nil if that
// fails or the two disagree.
func (w *Watch) whole(regs context.Registers, sp uint64, n int, event []uint64) *waits.Native {
	if w.paused == nil {
		return nil
	}
	th := paused.Thread{Regs: regs, Partial: true,
		Stack: memory.Run{Addr: sp, Data: w.stack[:n]}, Cut: n == maxStack}
	w.paused.Verify()
	stack := w.paused.Walk(&th)
	if w.again = stack.Gap == merge.GapNoInfo; stack.Gap != merge.GapNone {
		return nil
	}
	return join(stack.Frames, event)
}

// join returns the frames of a walk that an event lacks, and their positions. The walk must meet every
// address of the event in order, and no other methods. Methods may follow below an event with
// deepest frames, because it is truncated.
func join(frames []paused.StackFrame, event []uint64) *waits.Native {
	out := &waits.Native{Join: event[0]}
	at, met := 0, 0
	var block []waits.Unlisted
	for ; at < len(frames) && met < len(event); at++ {
		f := &frames[at]
		same, ok := meets(f, event[met])
		switch {
		case f.Trust.Doubtful():
			return nil
		case ok && met == 0:
			out.Entered = f.IP
			for i := range frames[:at] {
				out.Leaves = append(out.Leaves, frames[i].IP)
			}
		case ok && same:
			out.Same = append(out.Same, [2]uint64{f.IP, event[met]})
		}
		switch {
		case ok && met > 0:
			out.Blocks, block = put(out.Blocks, met, block), nil
			met++
		case ok:
			met++
		case method(f):
			return nil // the event lacks this method
		case met > 0:
			block = append(block, unlisted(f))
		}
	}
	if met < len(event) {
		return nil
	}
	for ; at < len(frames); at++ {
		if f := &frames[at]; f.Trust.Doubtful() || method(f) && len(event) < deepest {
			return nil
		}
		block = append(block, unlisted(&frames[at]))
	}
	out.Blocks = put(out.Blocks, len(event), block)
	return out
}

// deepest is the most frames of an event, counted from the leaf.
const deepest = 100

// near bounds how many bytes the runtime's address may be before a P/Invoke's true return address.
const near = 64

// meets reports whether a frame is at an address of an event. same means that the addresses differ: the
// frame's is less than near bytes after addr.
func meets(f *paused.StackFrame, addr uint64) (same, ok bool) {
	switch {
	case f.Exact:
		return false, false
	case f.IP == addr:
		return false, true
	}
	return true, method(f) && f.IP > addr && f.IP-addr < near
}

// method reports whether a frame is of a method and not of a stub of the runtime.
func method(f *paused.StackFrame) bool { return f.Function != 0 && f.Kind != unwind.KindStub }

func unlisted(f *paused.StackFrame) waits.Unlisted {
	u := waits.Unlisted{Addr: f.IP}
	if f.Function != 0 {
		u.Name = f.Name
	}
	return u
}

func put(blocks []waits.Block, before int, frames []waits.Unlisted) []waits.Block {
	if len(frames) == 0 {
		return blocks
	}
	return append(blocks, waits.Block{Before: before, Frames: frames})
}
