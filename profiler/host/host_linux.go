package host

/*
#include "shim.h"
*/
import "C"

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/agent"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// How long the threads of a round have to answer, all together: answerTime while the runtime is suspended,
// and lateTime after that. On a busy machine, threads that are ready to run wait for a processor for longer
// than a runtime may be suspended. A thread in an uninterruptible system call does not answer.
const (
	answerTime = 25 * time.Millisecond
	lateTime   = 100 * time.Millisecond
)

// host is the process as the C half presents it: agent.Host on a real CLR.
type host struct {
	process
	loader *live.Loader
	start  time.Time
	until  time.Duration       // since start: when the round stops waiting for answers
	taken  [Slots]*clr.Capture // captures of the round, by slot
}

func newHost() *host {
	return &host{process: newProcess(), loader: live.NewLoader(0), start: time.Now()}
}

func (h *host) SuspendRuntime() clr.HRESULT { return clr.HRESULT(C.sw_suspend_runtime()) }
func (h *host) Leave()                      { C.sw_window_leave() }
func (h *host) Now() int64                  { return int64(time.Since(h.start)) }

// ResumeRuntime also records which threads it wakes.
func (h *host) ResumeRuntime() clr.HRESULT {
	for i, c := range h.taken {
		if c != nil {
			C.sw_wait_note(C.int(i))
		}
	}
	hr := clr.HRESULT(C.sw_resume_runtime())
	for i, c := range h.taken {
		if c != nil {
			c.Wake = clr.Wake(C.sw_wait_ended(C.int(i)))
		}
	}
	h.answerWithin(lateTime)
	return hr
}

// Prime makes one walk while nothing is suspended.
func (h *host) Prime(id clr.ThreadID) {
	var callbacks C.int
	C.sw_prime(C.uint64_t(id), &callbacks)
}

// Enter opens the window; the threads' time to answer begins.
func (h *host) Enter() {
	C.sw_window_enter()
	h.taken = [Slots]*clr.Capture{}
	h.answerWithin(answerTime)
}

func (h *host) answerWithin(d time.Duration) { h.until = time.Since(h.start) + d }

// left returns the microseconds that the threads have left to answer.
func (h *host) left() C.int { return C.int(max(h.until-time.Since(h.start), 0).Microseconds()) }

func (h *host) Alive(t clr.Thread) bool {
	return C.sw_thread_alive(C.uint64_t(t.ID), C.uint64_t(t.TID)) != 0
}

func (h *host) Ask(slot int, t clr.Thread) {
	C.sw_ask(C.int(slot), C.uint64_t(t.ID), C.uint64_t(t.TID), C.uint64_t(t.StackHigh))
}

func (h *host) Await(slot int, c *clr.Capture) {
	switch C.sw_await(C.int(slot), h.left()) {
	case C.SW_CAPTURED:
		h.taken[slot] = c
		fill(slot, c)
	case C.SW_CAPTURING:
		c.Status = clr.CaptureLate
	case C.SW_IDLE:
		c.Status = clr.CaptureGone
	default:
		c.Status = clr.CaptureNoAnswer
	}
}

func (h *host) Late(slot int, c *clr.Capture) {
	c.Status = clr.CaptureNoAnswer
	if C.sw_await_late(C.int(slot), h.left()) == C.SW_CAPTURED {
		fill(slot, c)
	}
}

// fill fills c from the slot that the signal handler wrote.
func fill(slot int, c *clr.Capture) {
	s := C.sw_slot_at(C.int(slot))
	c.Status = clr.Captured
	c.Truncated = s.truncated != 0
	if s.foreign != 0 {
		c.Status = clr.CaptureForeign
	}
	c.Regs.Arch = context.ArchAMD64
	regs := &c.Regs.AMD64
	regs.RIP = uint64(s.regs[0])
	for i := range regs.GPR {
		regs.GPR[i] = uint64(s.regs[1+i])
	}
	const general = 1<<16 - 1
	regs.Known = general
	c.Stack = memory.Run{Addr: uint64(s.stack_addr), Data: unsafe.Slice((*byte)(s.stack), int(s.stack_len))}
}

func (h *host) DoStackSnapshot(slot int, c *clr.Capture) {
	c.Result = clr.HRESULT(C.sw_snapshot(C.int(slot)))
	frames(slot, c)
}

// Table implements agent.Process with the contents of /proc.
func (h *host) Table() *module.Table {
	maps, err := live.Maps(0)
	if err != nil && len(maps) == 0 {
		return nil
	}
	return h.loader.Table(maps)
}

// ThreadName returns the kernel's name.
func (h *host) ThreadName(tid uint64) string {
	b, err := os.ReadFile("/proc/self/task/" + strconv.FormatUint(tid, 10) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Jitted implements agent.Jitted.
func (h *host) Jitted(buf []clr.SnapshotFrame) []clr.SnapshotFrame {
	var functions, starts [16]C.uint64_t
	for i := range int(C.sw_jitted(&functions[0], &starts[0], C.int(len(starts)))) {
		buf = append(buf, clr.SnapshotFrame{Function: clr.FunctionID(functions[i]), IP: uint64(starts[i])})
	}
	return buf
}

// Memory implements agent.Host.
func (h *host) Memory() (memory.Reader, error) { return live.OpenProcess(os.Getpid()) }

// NewAgent returns a sampler that suspends the whole runtime for each round.
func NewAgent(cfg agent.Config, send func([]byte) error) *agent.Agent {
	return agent.New(newHost(), cfg, send)
}

// The C result of a wait converts to clr.Wake.
var (
	_ = [1]struct{}{}[C.SW_WAKE_NOT-C.int(clr.WakeNot)]
	_ = [1]struct{}{}[C.SW_WOKEN-C.int(clr.Woken)]
)

// The registers of a slot are those of context.AMD64.
var _ = [1]struct{}{}[len(context.AMD64{}.GPR)-16]
