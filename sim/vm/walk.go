package vm

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
)

// Callback is what the profiler's callback gets. Context is the walker's own
// buffer: it is overwritten for the next callback.
type Callback struct {
	Function clr.FunctionID // 0: a marker
	IP       uint64
	State    machine.State // what Context says, for tests
	Context  []byte        // nil without REGISTER_CONTEXT
}

// maxWalk bounds the frames of one walk; the real one has no such bound but the
// stack's size.
const maxWalk = 20000

// walk is the stack walk behind the table. Its rules, with the letters of the
// facts: it starts at the seed or at the top of the Frame chain (a); methods
// are reported (b), stubs and dynamic methods walked through (c), as are
// entries of the chain that lead to no managed code (d); after the last managed
// frame of a run comes a marker (e), and the chain tells where managed code
// goes on (f); stack pointers must stay inside the stack (g); a resumable entry
// on top is refused if the CLR has suspended the thread (h), as is a start from
// nothing (i); what an exception has unwound is skipped with its markers, and so
// is the handler on top of it (j); the callback can end the walk, and a fault in it
// is caught (k); a context is the walker's own (l).
func (k *Call) walk() clr.HRESULT {
	if !k.c.Variant.Windows() {
		// The PAL unwinds with a libunwind of its own, one thread at a time.
		k.a.Lock(k.c.Unwinder)
		defer k.a.Unlock(k.c.Unwinder)
	}
	var st machine.State
	if k.seed != nil {
		st = *k.seed
	} else {
		top := k.t.Top()
		switch {
		case top == nil:
			k.used("i")
			k.told.why = "there is neither a seed nor a Frame to start from"
			return clr.E_FAIL
		case top.Resumable && k.suspended:
			k.used("h")
			k.told.why = "the target was redirected for a collection, waits below its stub, and is suspended"
			return clr.E_FAIL
		}
		if f := k.below(0); f == nil {
			k.told.why = "no entry of the Frame chain leads to managed code"
			return clr.S_OK
		} else {
			st = k.remembered(f)
		}
	}
	k.used("a")
	for range maxWalk {
		hr, next, more := k.managedRun(&st)
		if !more {
			return hr
		}
		st = next
	}
	return clr.E_FAIL
}

// managedRun walks managed frames from st down to the next marker, and says
// where managed code continues below it.
func (k *Call) managedRun(st *machine.State) (hr clr.HRESULT, next machine.State, more bool) {
	for range maxWalk {
		// The walker asks for a frame's caller before it reports the frame: what
		// cannot be read is not reported.
		caller, hr := k.caller(st)
		if hr != clr.S_OK {
			return hr, next, false
		}
		if parent := k.parent(&caller); parent != nil {
			k.used("j")
			*st = *parent
			continue
		}
		if hr := k.method(st); hr != clr.S_OK {
			return hr, next, false
		}
		if !k.inside(st, &caller) {
			k.used("g")
			return clr.E_FAIL, next, false
		}
		*st = caller
		if k.c.Codes.Managed(st.PC) {
			continue
		}
		k.used("e")
		if hr := k.report(0, st); hr != clr.S_OK {
			return hr, next, false
		}
		f := k.below(st.R[k.c.Arch.SP()])
		if f == nil {
			return clr.S_OK, next, false
		}
		k.used("f")
		return clr.S_OK, k.remembered(f), true
	}
	return clr.E_FAIL, next, false
}

// method reports the managed frame st, if it is one to be reported.
func (k *Call) method(st *machine.State) clr.HRESULT {
	kind, id := k.c.Codes.At(st.PC)
	switch kind {
	case Method:
		k.used("b")
		return k.report(id, st)
	case Dynamic:
		k.used("c")
	case Hidden:
		k.used("j")
	}
	return clr.S_OK
}

// parent is the frame of the method that the handler belongs to whose caller is
// given, nil if that is no handler.
func (k *Call) parent(caller *machine.State) *machine.State {
	for i := range k.t.Handlers {
		if h := &k.t.Handlers[i]; h.CFA == caller.R[k.c.Arch.SP()] {
			return &h.Parent
		}
	}
	return nil
}

// below returns the innermost entry of the chain that lies above sp and leads to
// managed code, or nil.
func (k *Call) below(sp uint64) *Frame {
	for i := len(k.t.Chain) - 1; i >= 0; i-- {
		f := &k.t.Chain[i]
		switch {
		case f.Address < sp:
		case k.c.Codes.Managed(f.Caller.PC):
			return f
		default:
			k.used("d")
		}
	}
	return nil
}

// remembered is the managed caller that an entry of the chain leads to. A lazy one
// asks RtlLookupFunctionEntry for the frames of the CLR above it, under the lock of
// the system's table (dotnet/runtime#32286).
func (k *Call) remembered(f *Frame) machine.State {
	if l := k.c.Inverted; l != nil && f.Lazy && k.c.Variant.lazyFrames() {
		k.a.Lock(l)
		k.a.Unlock(l)
	}
	return f.Caller
}

// inside reports whether a frame and its caller are on the target's stack.
func (k *Call) inside(st, caller *machine.State) bool {
	low, high := k.t.M.Bounds()
	sp, next := st.R[k.c.Arch.SP()], caller.R[k.c.Arch.SP()]
	return sp >= low && next >= low && next < high
}

// fatal ends the process where no fault of a walk is caught: off Windows, though
// the source means to. Seen on 9.0.5, 3 of 3.
func (k *Call) fatal() {
	k.used("k")
	if !k.c.Variant.Windows() {
		k.a.Fault("the CLR's walk reads what is not there: segmentation fault")
	}
}

// caller unwinds one managed frame.
func (k *Call) caller(st *machine.State) (machine.State, clr.HRESULT) {
	_, f := k.c.Codes.Find(st.PC)
	if f == nil || f.At(uint32(st.PC-k.base(st.PC))-f.RVA) < 0 {
		// The decoder of prologs and epilogs runs into the middle of an
		// instruction; what it then reads is inside the CLR.
		k.fatal()
		if k.self == nil {
			k.a.Fault("the CLR faults inside itself at ip %#x, which is no instruction of a method, on a thread without a Thread object: fail-fast 80131506", st.PC)
		}
		return *st, clr.E_UNEXPECTED
	}
	next, ok := machine.Unwind(k.c.Arch, k.c.Codes.Find, *st, true, k.t.M.Word)
	if !ok {
		k.fatal()
		return next, clr.E_UNEXPECTED // the unwinder's access violation is caught
	}
	if k.t.hijacked != 0 && next.PC == k.c.HijackStub {
		if slot, ok := k.c.slotOf(k.t, st, &next); ok && slot == k.t.slot {
			next.PC = k.t.hijacked
		}
	}
	return next, clr.S_OK
}

func (k *Call) base(ip uint64) uint64 {
	im, _ := k.c.Codes.Find(ip)
	return im.Base
}

// report calls the profiler back. Anything but S_OK ends the walk.
func (k *Call) report(id clr.FunctionID, st *machine.State) clr.HRESULT {
	k.a.Yield("callback")
	k.told.add(id, st.PC)
	cb := Callback{Function: id, IP: st.PC, State: *st}
	k.used("l")
	if k.Flags&RegisterContext != 0 {
		cb.Context = WriteContext(k.c.Arch, st,
			make([]byte, k.c.Variant.ContextSize(k.c.Arch == image.ARM64)))
	}
	if k.Receive(&cb) != clr.S_OK {
		k.used("k")
		return clr.CORPROF_E_STACKSNAPSHOT_ABORTED
	}
	return clr.S_OK
}

// WriteContext writes st into b as a CONTEXT. ContextFlags stays 0, as the real
// ones leave it. Source: winnt.h, CONTEXT of x64 and ARM64.
func WriteContext(a image.Arch, st *machine.State, b []byte) []byte {
	put := binary.LittleEndian.PutUint64
	if a == image.ARM64 {
		for i := range 31 {
			put(b[0x08+8*i:], st.R[i])
		}
		put(b[0x100:], st.R[31])
		put(b[0x108:], st.PC)
		for i := range 32 {
			put(b[0x110+16*i:], st.V[i][0])
			put(b[0x118+16*i:], st.V[i][1])
		}
		return b
	}
	for i := range 16 {
		put(b[0x78+8*i:], st.R[i])
		put(b[0x1a0+16*i:], st.V[i][0])
		put(b[0x1a8+16*i:], st.V[i][1])
	}
	put(b[0xf8:], st.PC)
	return b
}
