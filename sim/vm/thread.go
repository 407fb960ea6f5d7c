package vm

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Mode is the garbage collector's view of a thread.
type Mode uint8

const (
	Preemptive Mode = iota
	Cooperative
)

func (m Mode) String() string { return [...]string{"preemptive", "cooperative"}[m&1] }

// Frame is an entry of the runtime's Frame chain. It shows where the next managed frame is. Source:
// frames.h (InlinedCallFrame, HelperMethodFrame, ResumableFrame).
type Frame struct {
	Address   uint64        // of the record on the stack
	Caller    machine.State // the managed caller as the record remembers it
	Resumable bool          // made by a hijack or a redirection
	Lazy      bool          // a HelperMethodFrame: Caller is found by unwinding
}

// Handler is a catch or finally clause that runs on top of the frames its
// exception has unwound. Source: stackwalk.cpp, StackFrameIterator::Filter.
type Handler struct {
	CFA    uint64        // of its frame: the sp of its caller
	Parent machine.State // the frame of the method it belongs to
}

// Exception is the exception state of a thread.
type Exception struct {
	Unwinding    bool // the second pass has begun, and no managed handler was entered yet
	Inconsistent bool // the state is being changed
}

// Thread is a thread that the CLR knows, because it has run managed code.
type Thread struct {
	ID     clr.ThreadID
	TID    uint64
	Actor  *sched.Actor
	M      *machine.Thread
	Mode   Mode
	Chain  []Frame // innermost last
	Forbid int     // forbid-suspend count
	Hijack *sched.Lock
	Except Exception
	// Handlers are those that run, innermost last.
	Handlers []Handler
	Dead     bool
	// Trap means that the context of the thread is not one to be redirected
	// from: it is inside the kernel's exception or service handling.
	Trap bool
	// Redirected means that the thread was sent to the redirect stub and has run
	// none of it yet.
	Redirected bool
	// hijacked holds the true return address that the CLR replaced at slot.
	slot, hijacked uint64
	// said is what the Thread object holds of the latest hijack; nothing clears it.
	said struct{ slot, ra uint64 }
}

// IsHijacked reports whether the CLR has replaced a return address of the thread.
func (t *Thread) IsHijacked() bool { return t.hijacked != 0 }

// Hijacked is what the Thread object says of a slot: the return address that
// was replaced there by the latest hijack, over or not.
func (t *Thread) Hijacked(slot uint64) (ra uint64, ok bool) {
	return t.said.ra, slot != 0 && slot == t.said.slot
}

// Top returns the innermost entry of the chain, or nil.
func (t *Thread) Top() *Frame {
	if len(t.Chain) == 0 {
		return nil
	}
	return &t.Chain[len(t.Chain)-1]
}

// Code is what the CLR knows of an address.
type Code uint8

const (
	Unmanaged Code = iota
	Method         // a method with metadata: reported, has a FunctionID
	Hidden         // a method that snapshots leave out (.NET 10's exception helpers)
	Dynamic        // IL stub or dynamic method: walked through, no FunctionID
	Stub           // precode, redirect and helper stubs: not managed to anybody
)

// Codes is the CLR's table of code: images of managed code.
type Codes struct {
	images []managed
}

type managed struct {
	im   *image.Image
	kind []Code // per function
	id   []clr.FunctionID
}

// Add makes im's functions managed code of the given kinds. first is the
// FunctionID of function 0; the others count up from it.
func (c *Codes) Add(im *image.Image, kinds []Code, first clr.FunctionID) {
	m := managed{im: im, kind: kinds}
	for i := range im.Funcs {
		m.id = append(m.id, first+clr.FunctionID(i)*16)
	}
	c.images = append(c.images, m)
}

// At reports what is at ip.
func (c *Codes) At(ip uint64) (Code, clr.FunctionID) {
	for i := range c.images {
		m := &c.images[i]
		if ip < m.im.Base || ip >= m.im.End() {
			continue
		}
		f := m.im.Find(ip)
		if f == nil {
			return Unmanaged, 0
		}
		for j := range m.im.Funcs {
			if f == &m.im.Funcs[j] {
				return m.kind[j], m.id[j]
			}
		}
	}
	return Unmanaged, 0
}

// Managed reports whether the CLR's walker counts ip as managed code. IL stubs
// count, though FunctionFromIP does not know them.
func (c *Codes) Managed(ip uint64) bool {
	k, _ := c.At(ip)
	return k == Method || k == Hidden || k == Dynamic
}

// inBody reports whether ip is at an instruction of managed code that is in no
// prolog and no epilog: what is fully interruptible never is.
func (c *Codes) inBody(ip uint64) bool {
	im, f := c.Find(ip)
	if f == nil || !c.Managed(ip) {
		return false
	}
	i := f.At(uint32(ip - im.Base - uint64(f.RVA)))
	return i >= 0 && f.Ops[i].Part == image.Body
}

// Find is where the rows of ip are.
func (c *Codes) Find(ip uint64) (*image.Image, *image.Func) {
	for i := range c.images {
		if im := c.images[i].im; ip >= im.Base && ip < im.End() {
			return im, im.Find(ip)
		}
	}
	return nil, nil
}

// FunctionFromIP is ICorProfilerInfo::GetFunctionFromIP: methods only.
func (c *Codes) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if k, id := c.At(ip); k == Method || k == Hidden {
		return id, clr.S_OK
	}
	return 0, clr.E_FAIL
}
