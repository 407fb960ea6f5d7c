package paused

import (
	"strings"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// held collects the words of the frames that run tasks or wait for them, while a stack is walked. Such a
// frame holds the address of its object, in a register or on the stack.
//
// The runtime runs a task through Task.ExecuteWithThreadLocal. It resumes an async method through a method
// of its box. While a thread blocks on a task, the leaf frames are methods of System.Threading, and the next
// frame is the method that waits.
type held struct {
	runs    []tasks.Run
	waits   []uint64
	left    bool     // a method has been seen that does not wait
	body    string   // the async method whose body was seen last
	words   []uint64 // of that frame, and of those that have resumed it
	resumed bool     // a method of a box has called the body
	passed  bool     // the body was registering its continuation: another thread may run its box by now
}

// maxHeld bounds the words of one frame's object.
const maxHeld = 512

// visit is a walker's Visit for a method with this name.
func (h *held) visit(name string, f *merge.Frame, regs *context.Registers, end uint64, stack *memory.Window) {
	if h.left = h.left || !strings.HasPrefix(name, "System.Threading."); !h.left {
		h.waits = hold(h.waits, f, regs, end, stack)
	}
	body, isBody := tasks.Body(name)
	switch {
	case isBody:
		if h.body != "" {
			h.finish()
		}
		h.body = body
	case h.body == "":
	case strings.HasPrefix(name, "System.Runtime.CompilerServices.Async") && strings.Contains(name, ".Start"):
		h.body, h.words, h.passed = "", nil, false // it has no box yet
	case strings.HasPrefix(name, "System.Runtime.CompilerServices.Async"):
		h.resumed = true
	case !strings.HasPrefix(name, "System.Threading.ExecutionContext.Run"):
		h.finish()
	}
	h.passed = h.passed || strings.Contains(name, "OnCompleted")
	if h.body != "" {
		h.words = hold(h.words, f, regs, end, stack)
	}
	if strings.HasPrefix(name, "System.Threading.Tasks.Task.ExecuteWithThreadLocal") {
		h.runs = append(h.runs, tasks.Run{Words: hold(nil, f, regs, end, stack)})
	}
}

// finish ends the search for the box of a body.
func (h *held) finish() {
	if h.body != "" && h.resumed && !h.passed {
		h.runs = append(h.runs, tasks.Run{Method: h.body, Words: h.words})
	}
	h.body, h.words, h.resumed, h.passed = "", nil, false, false
}

// hold adds the words of a frame that may be addresses of objects.
func hold(to []uint64, f *merge.Frame, regs *context.Registers, end uint64, stack *memory.Window) []uint64 {
	words := regs.AMD64.GPR[:]
	if regs.Arch == context.ArchARM64 {
		words = regs.ARM64.X[:]
	}
	for i, w := range words {
		if w != 0 && w&7 == 0 && (f.Exact || regs.Preserves(i)) {
			to = append(to, w)
		}
	}
	for at := f.SP; at+8 <= end && len(to) < maxHeld; at += 8 {
		if w, ok := stack.Word(at); ok && w != 0 && w&7 == 0 {
			to = append(to, w)
		}
	}
	return to
}

// holds starts to collect the words of the next walk.
func (s *Process) holds() {
	h := &held{}
	s.held = h
	s.walker.Visit = func(f *merge.Frame, _ int, regs *context.Registers, end uint64, stack *memory.Window) {
		if f.Function != 0 {
			h.visit(s.target.MethodAt(f.IP).Name, f, regs, end, stack)
		}
	}
}

// keepHeld gives the words of the last walk to the stack that was kept for Tasks.
func (s *Process) keepHeld(tid uint32) {
	s.held.finish()
	for i := len(s.kept) - 1; i >= 0; i-- {
		if k := &s.kept[i]; k.TID == tid {
			k.Runs, k.Waits = s.held.runs, s.held.waits
			break
		}
	}
	s.held, s.walker.Visit = nil, nil
}
