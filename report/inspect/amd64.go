package inspect

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

var amd64Regs = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10",
	"r11", "r12", "r13", "r14", "r15"}

// AMD64CodeText formats a code: its prolog offset, its operation, and the instruction that it undoes.
func AMD64CodeText(i *peamd64.Info, c *peamd64.Code) string {
	what := ""
	switch c.Op {
	case peamd64.UWOP_PUSH_NONVOL:
		what = "push " + amd64Regs[c.Info&15]
	case peamd64.UWOP_ALLOC_LARGE, peamd64.UWOP_ALLOC_SMALL:
		what = fmt.Sprintf("sub rsp, %#x", c.Operand)
	case peamd64.UWOP_SET_FPREG, peamd64.UWOP_SET_FPREG_LARGE:
		what = fmt.Sprintf("lea %s, [rsp+%#x]", amd64Regs[i.FrameReg&15], c.Operand)
	case peamd64.UWOP_SAVE_NONVOL, peamd64.UWOP_SAVE_NONVOL_FAR:
		what = fmt.Sprintf("mov [frame+%#x], %s", c.Operand, amd64Regs[c.Info&15])
	case peamd64.UWOP_SAVE_XMM128, peamd64.UWOP_SAVE_XMM128_FAR:
		what = fmt.Sprintf("movaps [frame+%#x], xmm%d", c.Operand, c.Info&15)
	case peamd64.UWOP_PUSH_MACHFRAME:
		what = "machine frame"
		if c.Info == 1 {
			what += " with error code"
		}
	}
	return fmt.Sprintf("+%-3d %-16s %s", c.Offset, c.Op, what)
}

// AMD64Data describes an UNWIND_INFO, one line for each part: the header, the epilogs of version 2, the codes
// in the order in which they are undone, the handler, and the parent.
func AMD64Data(i *peamd64.Info, fn peamd64.RuntimeFunction) []string {
	head := fmt.Sprintf("UNWIND_INFO at %#x: version %d, flags %s, prolog %d bytes, %d code slots", i.RVA,
		i.Version, flagText(i.Flags), i.Prolog, i.Count)
	if i.FrameReg != 0 {
		head += fmt.Sprintf(", frame register %s at rsp+%#x", amd64Regs[i.FrameReg&15], uint32(i.FrameOffset))
	}
	out := []string{head}
	epilogs, codes := i.Epilogs()
	for n := 0; n < len(epilogs); n += 2 {
		out = append(out, epilogText(i, fn, epilogs, n))
	}
	for len(codes) > 0 {
		c, why := i.Code(codes)
		if why != peamd64.OK {
			out = append(out, fmt.Sprintf("%x: %s", codes[:min(6, len(codes))], why))
			break
		}
		out = append(out, AMD64CodeText(i, &c))
		codes = codes[c.Size():]
	}
	if i.Handler != 0 {
		out = append(out, fmt.Sprintf("handler at %#x, its data at %#x", i.Handler, i.HandlerData))
	}
	if i.Chained() {
		out = append(out, fmt.Sprintf("chained to [%#x,%#x), unwind %#x", i.Parent.Begin,
			i.Parent.End, i.Parent.Unwind))
	}
	return out
}

func flagText(flags uint8) string {
	var parts []string
	for bit, name := range map[uint8]string{peamd64.UNW_FLAG_EHANDLER: "EHANDLER",
		peamd64.UNW_FLAG_UHANDLER: "UHANDLER", peamd64.UNW_FLAG_CHAININFO: "CHAININFO"} {
		if flags&bit != 0 {
			parts = append(parts, name)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	if len(parts) == 2 && parts[0] > parts[1] {
		parts[0], parts[1] = parts[1], parts[0]
	}
	return strings.Join(parts, "+")
}

// epilogText describes the EPILOG code at offset n of b, the leading EPILOG codes.
func epilogText(i *peamd64.Info, fn peamd64.RuntimeFunction, b []byte, n int) string {
	c, _ := i.Code(b[n:]) // an EPILOG code is always read
	size := uint32(b[0])
	switch {
	case n == 0 && c.Info&1 != 0:
		return fmt.Sprintf("EPILOG of %d bytes at %#x, the function's end", size, fn.End-size)
	case n == 0:
		return fmt.Sprintf("EPILOG of %d bytes, none at the function's end", size)
	case c.Operand == 0:
		return "EPILOG padding"
	}
	return fmt.Sprintf("EPILOG at %#x", fn.End-c.Operand)
}

// amd64Effect says where the caller's registers are, according to the codes that were undone so far. All
// offsets are relative to one base register.
type amd64Effect struct {
	base    string // rsp, or the frame register
	at      int64  // where RSP is after the undone codes, from base
	frame   int64  // where the frame begins, from base: saves count from there
	saved   []arm64Saved
	machine bool
}

// amd64Rules runs the codes that apply at rva symbolically, through chained parents. It returns the CFA and
// the saved registers as text, or "?" and a reason. It ignores epilogs.
//
// It is separate from the walkers' interpreter because it produces text, also for data that
// they refuse. It reports what it cannot describe. TestEveryOperationHasAnEffect compares its
// operations with the decoder's.
func amd64Rules(f *pe.File, fn peamd64.RuntimeFunction, rva uint32) (cfa, saved string) {
	e := amd64Effect{base: "rsp"}
	for link := 0; ; link++ {
		i, fault := f.AMD64().Info(fn.Unwind)
		if !fault.OK() {
			return "?", fault.Reason.String()
		}
		done := uint32(256)
		if link == 0 && rva-fn.Begin < done {
			done = rva - fn.Begin
		}
		if why := e.codes(&i, done, link > 0); why != peamd64.OK {
			return "?", why.String()
		}
		if !i.Chained() || e.machine {
			return e.text()
		}
		var why peamd64.Reason
		if fn, why = f.AMD64().Resolve(i.Parent); why != peamd64.OK || link == 32 {
			return "?", max(why, peamd64.ChainDepth).String()
		}
	}
}

// codes undoes the operations of the first done bytes.
func (e *amd64Effect) codes(i *peamd64.Info, done uint32, parent bool) peamd64.Reason {
	_, codes := i.Epilogs()
	// Saves are relative to the frame base. Once a frame register is set, it is the base.
	// Operations that a child undid before are relative to RSP, and cannot be expressed
	// with another register.
	if i.FrameReg != 0 && (parent || done >= uint32(i.Prolog) || setFP(i, codes, done)) && e.base == "rsp" &&
		len(e.saved) == 0 && e.at == 0 {
		e.base = amd64Regs[i.FrameReg&15]
		e.frame = -int64(i.FrameOffset)
		e.at = e.frame
	}
	for len(codes) > 0 {
		c, why := i.Code(codes)
		if why != peamd64.OK {
			return why
		}
		codes = codes[c.Size():]
		if uint32(c.Offset) <= done && !e.undo(&c) {
			return peamd64.BadOpcode
		}
	}
	return peamd64.OK
}

// setFP reports whether the code that sets the frame register applies.
func setFP(i *peamd64.Info, codes []byte, done uint32) bool {
	for len(codes) > 0 {
		c, why := i.Code(codes)
		if why != peamd64.OK {
			return false
		}
		if c.Op == peamd64.UWOP_SET_FPREG || c.Op == peamd64.UWOP_SET_FPREG_LARGE {
			return uint32(c.Offset) <= done
		}
		codes = codes[c.Size():]
	}
	return false
}

// undo describes the effect of undoing a code, or reports that it cannot.
func (e *amd64Effect) undo(c *peamd64.Code) bool {
	switch c.Op {
	case peamd64.UWOP_PUSH_NONVOL:
		e.saved = append(e.saved, arm64Saved{amd64Regs[c.Info&15], e.base, e.at})
		e.at += 8
	case peamd64.UWOP_ALLOC_LARGE, peamd64.UWOP_ALLOC_SMALL:
		e.at += int64(c.Operand)
	case peamd64.UWOP_SET_FPREG:
		e.at = e.frame
	case peamd64.UWOP_SET_FPREG_LARGE:
		e.frame = -int64(c.Operand)
		e.at = e.frame
	case peamd64.UWOP_SAVE_NONVOL, peamd64.UWOP_SAVE_NONVOL_FAR:
		e.saved = append(e.saved, arm64Saved{amd64Regs[c.Info&15], e.base, e.frame + int64(c.Operand)})
	case peamd64.UWOP_SAVE_XMM128, peamd64.UWOP_SAVE_XMM128_FAR:
		e.saved = append(e.saved,
			arm64Saved{fmt.Sprintf("xmm%d", c.Info&15), e.base, e.frame + int64(c.Operand)})
	case peamd64.UWOP_PUSH_MACHFRAME:
		e.machine = true
		e.at += 8 * int64(c.Info)
	default:
		return false
	}
	return true
}

func (e *amd64Effect) text() (cfa, saved string) {
	if e.machine {
		return fmt.Sprintf("machine frame at %s%+d", e.base, e.at), e.list(e.at, "")
	}
	end := e.at + 8 // above the return address
	return fmt.Sprintf("%s%+d", e.base, end), e.list(end, "ra [cfa-8]")
}

func (e *amd64Effect) list(end int64, last string) string {
	var parts []string
	for _, s := range e.saved {
		parts = append(parts, fmt.Sprintf("%s [cfa%+d]", s.name, s.off-end))
	}
	if last != "" {
		parts = append(parts, last)
	}
	return strings.Join(parts, ", ")
}
