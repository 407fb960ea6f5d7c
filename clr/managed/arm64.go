package managed

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// functionARM64 holds the data of a function of ARM64.
type functionARM64 struct {
	info   pearm64.Info
	packed pearm64.Buffer // the codes, if the entry is packed
	shift  uint32         // see allocated
}

// loadARM64 copies a function's unwind information.
func (t *Tables) loadARM64(fn *function) bool {
	e := fn.EntryARM64
	fn.arm = &functionARM64{}
	info, fault := pearm64.Info{}, pearm64.Fault{}
	if e.Packed() {
		info, fault = pearm64.DecodePackedInfo(e.Data, &fn.arm.packed)
	} else {
		record, ok := t.record(fn.Base + uint64(e.Data))
		if !ok {
			return false
		}
		info, fault = pearm64.DecodeXdata(record)
	}
	if !fault.OK() {
		return true // a step through it will fail
	}
	fn.arm.info = info
	var first [4]byte
	if t.src.ReadAt(first[:], fn.Base+uint64(e.Begin)) &&
		allocated(&info, binary.LittleEndian.Uint32(first[:])) {
		fn.arm.shift = 4
	}
	return true
}

// record copies an .xdata record.
func (t *Tables) record(at uint64) ([]byte, bool) {
	head := make([]byte, pearm64.XdataHead)
	if !t.src.ReadAt(head, at) {
		return nil, false
	}
	n, fault := pearm64.XdataSize(head)
	if !fault.OK() {
		return head, true
	}
	b := make([]byte, n)
	return b, t.src.ReadAt(b, at)
}

// allocated reports whether a function's last code, that of its first instruction, describes an allocation
// for which the function has no instruction. This is the case for a method that continues a loop of a lower tier
// (on-stack replacement): its frame is below that of the replaced method, which the code describes. Every
// offset in its prolog then misses one code. Seen in .NET 10.
func allocated(info *pearm64.Info, first uint32) bool {
	// sub sp, sp, #n; or movn, movz or movk of a size that is subtracted next
	const subSP, move = 0xd10003ff, 0x12800000
	var last pearm64.Code
	for b := info.Codes; len(b) > 0; {
		c, reason := pearm64.DecodeCode(b)
		if reason != pearm64.OK || c.Op == pearm64.End {
			break
		}
		last, b = c, b[c.Size:]
	}
	switch last.Op {
	case pearm64.AllocS, pearm64.AllocM, pearm64.AllocL:
		return first&0xff8003ff != subSP && first&0x1f800000 != move
	}
	return false
}

// stepARM64 is Step for ARM64.
func (t *Tables) stepARM64(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	at, from := s.Address(), &s.Regs.ARM64
	*f = unwind.Frame{IP: at.IP, SP: from.Sp, FP: from.FP(), Module: -1,
		Kind: unwind.KindManaged, Trust: s.Trust, Exact: at.Exact}
	fn, stop := t.find(at)
	if stop != unwind.StopNone {
		return stop
	}
	to, trust := *from, unwind.TrustLeaf
	if fn.Kind == Method {
		trust, stop = t.leaveARM64(fn, at, &to, mem)
	} else {
		f.Kind = unwind.KindStub
		stop = t.stubARM64(fn.Kind, at, &to)
	}
	if stop == unwind.StopNone {
		stop = progressARM64(from, &to, mem, b)
	}
	if stop != unwind.StopNone {
		return stop
	}
	*from = to
	s.Reached(false, trust)
	f.CFA = from.Sp
	return unwind.StopNone
}

// leaveARM64 undoes a method's frame. Like the runtime, it uses the offset of a return address without
// subtracting anything. The exception is a return address past the function's end, after a call that does not
// return: its offset is that of the call.
func (t *Tables) leaveARM64(fn *function, at unwind.Address, regs *context.ARM64,
	mem *memory.Window) (trust unwind.Trust, stop unwind.Stop) {
	info, offset := &fn.arm.info, uint32(at.IP-fn.Base)-fn.EntryARM64.Begin
	if offset >= info.Length && !at.Exact {
		offset -= 4
	}
	if fn.arm.shift != 0 {
		if _, part, fault := info.At(offset); fault.OK() && part == pearm64.Prolog {
			offset += fn.arm.shift
		}
	}
	part, saved, stop := arm64.StepFunction(info, offset, at.Exact, regs, mem)
	if t.saved = saved; part == pearm64.Epilog {
		return unwind.TrustEpilog, stop
	}
	return unwind.TrustUnwindInfo, stop
}

// progressARM64 checks progress: a frame without stack, at its start or end, leaves the stack pointer
// unchanged.
func progressARM64(from, to *context.ARM64, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	switch {
	case to.Sp < from.Sp, to.Sp == from.Sp && to.PC == from.PC:
		return unwind.NoProgress
	case to.PC == 0:
		return b.Null(from.Sp, mem.Hot().End())
	}
	return unwind.StopNone
}

// stubARM64 leaves code of the runtime in which a thread was interrupted. No stub pushes anything: the return
// address is always in x30.
func (t *Tables) stubARM64(kind Kind, at unwind.Address, regs *context.ARM64) unwind.Stop {
	const lr = 30
	ra := regs.X[lr]
	switch {
	case !at.Exact || regs.Known>>lr&1 == 0:
		return unwind.NoInfo
	case t.isMethod(ra):
	case kind == Thunk || !t.followsCall(ra):
		return unwind.NoInfo
	}
	regs.PC = ra
	regs.Known &= arm64.Preserved
	return unwind.StopNone
}

// ReturnSlot returns the address from which the last Step has read the return address, on ARM64; 0 if it was
// in its register.
func (t *Tables) ReturnSlot() uint64 { return t.saved }
