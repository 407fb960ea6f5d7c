package stack

import (
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/sample/paused"
)

// crash is the signal that ended the process of a core.
type crash struct {
	TID        uint32             `json:"tid"`
	Signal     string             `json:"signal"`
	Address    string             `json:"address,omitempty"`
	Overflow   bool               `json:"stack_overflow,omitempty"`
	FailFast   string             `json:"fail_fast,omitempty"`  // the message of Environment.FailFast
	Unhandled  bool               `json:"unhandled,omitempty"`  // the first exception ended the process
	Exceptions []paused.Exception `json:"exceptions,omitempty"` // in progress, then its inner ones

	failFastCut bool // FailFast is the beginning of the message
}

// crashOf returns the crash of a core, nil if no signal ended the process. The first thread of a core is the
// one that crashed.
func crashOf(c *dump.Core, p *paused.Process, stacks []paused.Stack) *crash {
	t := &c.Threads[0]
	if t.Fatal() == "" {
		return nil
	}
	out := &crash{TID: t.TID, Signal: t.Fatal()}
	if t.Faulted {
		out.Address = fmt.Sprintf("%#x", t.Fault)
		out.Overflow = out.Signal == "SIGSEGV" && p.Overflows(t.Regs.SP(), t.Fault)
	}
	for i := range stacks {
		if stacks[i].TID == t.TID {
			out.Overflow = out.Overflow || stacks[i].Overflow
			out.Exceptions, out.Unhandled = p.Exceptions(&stacks[i])
			out.Unhandled = out.Unhandled && out.Signal == "SIGABRT"
			if out.Signal == "SIGABRT" {
				out.FailFast, out.failFastCut = p.FailFast(&stacks[i])
			}
		}
	}
	return out
}

// write describes the crash in one line, and each inner exception in another.
func (c *crash) write(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "crash: thread %d received %s", c.TID, c.Signal)
	if c.Address != "" {
		fmt.Fprintf(w, " at address %s", c.Address)
	}
	if c.Overflow {
		fmt.Fprint(w, ": stack overflow")
	}
	if c.FailFast != "" {
		fmt.Fprintf(w, ": Environment.FailFast: %q", c.FailFast)
	}
	if c.failFastCut {
		fmt.Fprint(w, " (the message is longer)")
	}
	for i := range c.Exceptions {
		e, before := &c.Exceptions[i], ", exception in progress:"
		switch {
		case i > 0:
			before = "\n  inner exception"
		case c.Unhandled:
			before = ": unhandled"
		}
		fmt.Fprintf(w, "%s %s", before, e.Type)
		if e.Message != "" {
			fmt.Fprintf(w, ": %q", e.Message)
		}
		if e.Cut {
			fmt.Fprint(w, " (the message is longer)")
		}
	}
	fmt.Fprintln(w)
}
