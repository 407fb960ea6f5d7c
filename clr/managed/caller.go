package managed

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// While a thread is suspended, Tables must not ask the source. So Tables learns methods before, and Caller
// steps over the learned ones.

// Learn copies the unwind data of the methods in a report of DoStackSnapshot. It asks the source, so call it
// while nothing is suspended.
func (t *Tables) Learn(report []clr.SnapshotFrame) {
	for i := range report {
		if f := &report[i]; !f.Marker() {
			t.learn(f.IP)
		}
	}
}

// learn copies the unwind data of the method at a return address.
func (t *Tables) learn(ra uint64) {
	fn, stop := t.find(unwind.ReturnAddress(ra))
	if stop != unwind.StopNone || fn.Kind != Method || fn.learned {
		return
	}
	fn.learned, fn.called = true, t.followsCall(ra)
	if t.arch == context.ArchARM64 {
		fn.least = leastARM64(&fn.arm.info, uint32(ra-fn.Base)-fn.EntryARM64.Begin)
	} else {
		fn.least = leastAMD64(fn.Table, fn.Entry, uint32(ra-fn.Base))
	}
}

// Caller is Step for a return address that was learned. It does not ask the source, and allocates nothing.
// BadInfo means that no call precedes the address, NoProgress that the frame is smaller than the method's. If
// the result is not StopNone, s is undefined.
func (t *Tables) Caller(s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	at, sp := s.Address(), s.Regs.SP()
	fn := t.copies[key{at.IP, at.Exact}]
	switch {
	case fn == nil, !fn.learned, at.Exact:
		return unwind.NoInfo
	case !fn.called:
		return unwind.BadInfo
	}
	stop := t.Step(s, mem, b, &t.left)
	if stop == unwind.StopNone && s.Regs.SP()-sp < fn.least {
		return unwind.NoProgress
	}
	return stop
}

// leastAMD64 returns the least size in bytes of a function's frame at pc, with the return address: the
// function may allocate more at run time. The result is 0 in a prolog, which may call a stack probe, and if
// the unwind data are bad.
func leastAMD64(t *peamd64.Table, fn peamd64.RuntimeFunction, pc uint32) (n uint64) {
	for range maxChain {
		info, fault := t.Info(fn.Unwind)
		if !fault.OK() || pc-fn.Begin < uint32(info.Prolog) {
			return 0
		}
		for b := info.Codes; len(b) > 0; {
			c, why := info.Code(b)
			if why != peamd64.OK || c.Size() == 0 || c.Size() > len(b) {
				return 0
			}
			if c.Op == peamd64.UWOP_PUSH_MACHFRAME {
				return 0
			}
			n += c.StackDecrease()
			b = b[c.Size():]
		}
		if !info.Chained() {
			return n + 8
		}
		fn, pc = info.Parent, ^uint32(0) // behind the parent's prolog
	}
	return 0
}

// leastARM64 is leastAMD64 for ARM64: a prolog's allocations, and its saves that lower the stack pointer.
func leastARM64(info *pearm64.Info, offset uint32) (n uint64) {
	b, part, fault := info.At(offset)
	if !fault.OK() || part != pearm64.Body {
		return 0
	}
	for len(b) > 0 {
		c, why := pearm64.DecodeCode(b)
		if why != pearm64.OK {
			return 0
		}
		switch {
		case c.Last():
			return n
		case c.Pre, c.Op == pearm64.AllocS, c.Op == pearm64.AllocM, c.Op == pearm64.AllocL:
			n += uint64(c.Off)
		}
		b = b[c.Size:]
	}
	return 0
}
