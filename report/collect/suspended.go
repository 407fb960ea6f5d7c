package collect

import (
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
)

// The runtime stops a thread that runs managed code by a signal; the signal's handler waits until the thread
// may continue, for example after a collection. These frames are on the stack of a method that called none of
// them. They are shown as one frame whose name explains it.

// heldName is that frame's name.
const heldName = "[stopped by the runtime]"

// signalMark begins the name of the frame that a handler returns to.
const signalMark = "<signal handler called> "

// stopped replaces the frames of the runtime's handler, which are at the leaf, in all stacks from an
// index on. A stack in which the handler waits shows which function it is. Its frames are then replaced
// in samples where it does not wait yet, too. A handler that throws (of SIGSEGV, for a null reference)
// does not wait.
func (b *builder) stopped(from int) {
	handlers := map[string]bool{}
	for i := from; i < len(b.p.Stacks); i++ {
		if at := b.interrupted(&b.p.Stacks[i]); at > 0 && b.waiting(i) {
			handlers[b.name(i, at-1)] = true
		}
	}
	held := int32(-1)
	for i := from; i < len(b.p.Stacks); i++ {
		s := &b.p.Stacks[i]
		at := b.interrupted(s)
		if at <= 0 || !handlers[b.name(i, at-1)] {
			continue
		}
		if held < 0 {
			held = int32(len(b.p.Frames))
			b.p.Frames = append(b.p.Frames,
				export.Frame{Name: heldName, ModuleIndex: -1, Class: export.ClassRuntime})
		}
		s.Frames = slices.Replace(s.Frames, 0, at+1, held)
	}
}

// waiting reports whether the leaf of a stack is a wait, in the kernel or on the way there.
func (b *builder) waiting(stack int) bool {
	name := b.name(stack, 0)
	if name == export.Kernel && len(b.p.Stacks[stack].Frames) > 1 {
		name = b.name(stack, 1)
	}
	return isWait(name)
}

func (b *builder) name(stack, frame int) string {
	return b.p.Frames[b.p.Stacks[stack].Frames[frame]].Name
}

// interrupted returns the index of a signal frame directly above a managed frame. It returns -1 if there is
// none, if managed code is above the signal frame, or if the signal's handler is not in the runtime.
func (b *builder) interrupted(s *export.Stack) int {
	for i, f := range s.Frames {
		switch frame := &b.p.Frames[f]; {
		case frame.Class == export.ClassKernel:
			continue
		case frame.Class != export.ClassNative && frame.Class != export.ClassRuntime:
			return -1
		case !strings.HasPrefix(frame.Name, signalMark):
			continue
		case i == 0 || i+1 == len(s.Frames) || b.p.Frames[s.Frames[i+1]].Class != export.ClassManaged ||
			b.p.Frames[s.Frames[i-1]].Class != export.ClassRuntime:
			return -1
		}
		return i
	}
	return -1
}

// isWait knows the C libraries' functions in which a thread waits for another.
func isWait(name string) bool {
	return slices.ContainsFunc([]string{"__futex_", "futex_wait", "pthread_cond_", "__pthread_cond_",
		"__GI___lll_lock_wait", "__lll_lock_wait", "lll_lock_wait", "__timedwait", "syscall"},
		func(p string) bool { return strings.HasPrefix(name, p) })
}
