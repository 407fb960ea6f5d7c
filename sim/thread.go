package sim

import (
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// step executes one instruction, and is a scheduling point if the world is fine.
func (t *Thread) step() machine.Event {
	if t.W.Fine {
		t.A.Yield("runs")
		t.redirected()
	}
	return t.M.Step()
}

// toCall runs the current function to its next call site, or, if it has none,
// to the end of its prolog.
func (t *Thread) toCall() {
	depth := t.M.Depth()
	for {
		op, part := t.M.Op()
		if op == nil || part == image.Body && !calls(t) {
			return // a leaf stays in its body
		}
		if t.step() == machine.AtCall || t.M.Depth() < depth {
			return
		}
	}
}

// calls reports whether the function in which t runs has a call site.
func calls(t *Thread) bool {
	im, f := t.at()
	return im != nil && callSite(f) >= 0
}

// at returns the function in which t runs.
func (t *Thread) at() (*image.Image, *image.Func) { return t.M.Func() }

// Find returns the function whose code holds ip, nil if none does.
func (w *World) Find(ip uint64) (*image.Image, *image.Func) {
	for _, im := range []*image.Image{w.Kit.System, w.Kit.CLR, w.Kit.App, w.Kit.Code} {
		if f := im.Find(ip); f != nil {
			return im, f
		}
	}
	return nil, nil
}

// call calls the function name, runs body inside it, and returns.
func (t *Thread) call(name string, body func()) {
	f := t.enter(name)
	depth := t.M.Depth()
	t.toCall()
	t.yield(f)
	if body != nil {
		body()
	}
	t.leave(depth)
}

// enter performs a call of the function name.
func (t *Thread) enter(name string) *image.Func {
	im, f := t.W.Kit.Lookup(name)
	t.M.Loop() // a body may call many times from its one call site
	if !t.M.Call(im, f) {
		t.A.Fault("%s cannot call %s: no call site, or no room on the stack", t.A.Name(), name)
	}
	return f
}

// Known reports whether the CLR knows t.
func (t *Thread) Known() bool { return t.Hijack != nil }

// Room is how many bytes of t's stack are left.
func (t *Thread) Room() uint64 {
	low, _ := t.M.Bounds()
	return t.M.State().R[t.W.Arch.SP()] - low
}

// leave runs the function at depth to its end.
func (t *Thread) leave(depth int) {
	for t.M.Depth() >= depth {
		switch t.step() {
		case machine.AtCall:
			t.M.Skip()
		case machine.Diverted:
			t.tripped()
		case machine.Ended, machine.Faulted:
			t.A.Fault("%s: a simulated thread lost its way at %#x", t.A.Name(), t.M.State().PC)
		}
	}
}

// yield lets the scheduler switch to another thread while t runs f.
func (t *Thread) yield(f *image.Func) {
	t.A.Observe(uint64(f.RVA)) // the format of the label does not say which function
	t.A.Yield("%s", f.Name)
	t.redirected()
}

// WaitUntil is a loop of the running function that ends when cond holds. It has no
// safe point, but the thread can be redirected in it.
func (t *Thread) WaitUntil(why string, cond func() bool) {
	for !cond() {
		t.A.WaitUntil(why, func() bool { return t.Redirected || cond() })
		t.redirected()
	}
}

// Native calls an unmanaged function from unmanaged code.
func (t *Thread) Native(name string, body func()) { t.call(name, body) }

// Method calls a method from managed code.
func (t *Thread) Method(name string, body func()) {
	t.W.CLR.Poll(t.A, t.Thread)
	t.call(name, body)
}

// Managed enters managed code from unmanaged code, through the CLR: the thread
// is in cooperative mode within body.
func (t *Thread) Managed(name string, body func()) {
	t.W.adopt(t)
	t.call(CallManaged, func() {
		t.W.CLR.Return(t.A, t.Thread)
		t.call(name, body)
		t.W.CLR.Leave(t.Thread)
	})
}

// PInvoke calls an unmanaged function from managed code: the thread is in
// preemptive mode within body, and the Frame chain knows its caller. After it
// the thread waits for any suspension of the runtime to end.
func (t *Thread) PInvoke(name string, body func()) {
	t.framed(name, func() { t.W.CLR.Leave(t.Thread) }, body,
		func() { t.W.CLR.Return(t.A, t.Thread) })
}

// framed is call with an entry on the Frame chain. began and ended run after the call and after the return.
func (t *Thread) framed(name string, began, body, ended func()) {
	t.M.Loop()
	caller := t.M.State()
	f := t.enter(name)
	depth := t.M.Depth()
	t.push(caller, false)
	began()
	t.toCall()
	t.yield(f)
	if body != nil {
		body()
	}
	t.leave(depth)
	ended()
	t.pop()
}

// Stub is PInvoke by way of an IL stub.
func (t *Thread) Stub(stub, name string, body func()) {
	t.call(stub, func() { t.PInvoke(name, body) })
}

// Helper calls a helper of the CLR from managed code. The thread stays in cooperative
// mode, so DoStackSnapshot needs a seed.
func (t *Thread) Helper(name string, body func()) { t.call(name, body) }

// Framed is Helper with an entry on the Frame chain, for a helper that runs managed
// code itself (Reenter), or changes to preemptive mode. Source:
// HelperMethodFrame in frames.h.
func (t *Thread) Framed(name string, body func()) {
	t.framed(name, func() { t.Top().Lazy = true }, body, func() {})
}

// Reenter is Managed from a helper that is in cooperative mode already.
func (t *Thread) Reenter(name string, body func()) {
	t.call(CallManaged, func() { t.call(name, body) })
}

// Handler is Reenter for a catch or finally clause of the method that called the
// helper. The frames between the two have been unwound.
func (t *Thread) Handler(name string, body func()) {
	parent := t.Top().Caller
	t.Reenter(name, func() {
		t.truth = t.M.Truth(t.truth[:0])
		t.Handlers = append(t.Handlers, vm.Handler{CFA: t.truth[1].State.R[t.W.Arch.SP()], Parent: parent})
		body()
		t.Handlers = t.Handlers[:len(t.Handlers)-1]
	})
}

// push adds the managed frame from which t has just called to the Frame chain.
func (t *Thread) push(before machine.State, resumable bool) {
	t.truth = t.M.Truth(t.truth[:0])
	t.Chain = append(t.Chain,
		vm.Frame{Address: before.R[t.W.Arch.SP()], Caller: t.truth[1].State, Resumable: resumable})
}

func (t *Thread) pop() { t.Chain = t.Chain[:len(t.Chain)-1] }

// waitFrames puts the frames of a wait for the collector on t's stack.
func (w *World) waitFrames(a *sched.Actor, v *vm.Thread, resumable bool, block func()) {
	for _, t := range w.threads {
		if t.Thread != v {
			continue
		}
		outer := GCWait
		if resumable {
			outer = Redirect
		}
		t.wait(outer, resumable, block)
		return
	}
	block()
}

func (t *Thread) wait(outer string, resumable bool, block func()) {
	t.M.Loop()
	before := t.M.State()
	managed := t.W.CLR.Codes.Managed(before.PC)
	t.enter(outer)
	depth := t.M.Depth()
	if managed && resumable {
		t.push(before, true)
	}
	t.toCall()
	t.call(Wait, block)
	t.leave(depth)
	if managed && resumable {
		t.pop()
	}
}

// Poll is a safe point.
func (t *Thread) Poll() { t.W.CLR.Poll(t.A, t.Thread) }

// Collect makes an allocation that starts a collection.
func (t *Thread) Collect() {
	t.Framed(GCAlloc, func() { t.W.CLR.Collect(t.A, t.Thread) })
}

// Jit compiles a method: in preemptive mode, under the CLR's lock and, on
// Windows, that of the operating system's function tables.
func (t *Thread) Jit() {
	t.Framed(JitCompile, func() {
		t.W.CLR.Leave(t.Thread)
		var os *sched.Lock
		if t.W.Variant.Windows() {
			os = t.W.Tables
		}
		t.W.CLR.Jit(t.A, os)
		t.W.CLR.Return(t.A, t.Thread)
	})
}

// Load loads or unloads a library, as the first call of a P/Invoke does: a helper of
// the CLR calls the system's loader, in preemptive mode.
func (t *Thread) Load(l *sched.Lock) {
	t.Framed(JitCompile, func() {
		t.W.CLR.Leave(t.Thread)
		t.Holding(l, LoadLibrary, nil)
		t.W.CLR.Return(t.A, t.Thread)
	})
}

// Holding runs body while the thread holds a lock, inside the function that takes the lock.
func (t *Thread) Holding(l *sched.Lock, in string, body func()) {
	t.call(in, func() {
		t.A.Lock(l)
		t.A.Yield("holds the lock")
		if body != nil {
			body()
		}
		t.A.Unlock(l)
	})
}

// tripped runs the stub to which a hijacked return led. The thread waits there until
// the suspension ends, and continues at its return address.
func (t *Thread) tripped() {
	im, f := t.W.Kit.Lookup(HijackStub)
	if !t.M.Enter(im, f, t.Unhijack()) {
		t.A.Fault("%s: no room for the hijack stub", t.A.Name())
	}
	t.stub(t.M.Depth())
}

// stub waits in the CLR's stub at depth until the suspension ends, and continues behind it.
func (t *Thread) stub(depth int) {
	t.push(t.M.State(), true)
	t.toCall()
	t.W.CLR.Poll(t.A, t.Thread)
	t.leave(depth)
	t.pop()
}

// redirected runs the redirect stub if the CLR has redirected t. The thread waits there
// until the suspension ends, and continues where it was.
func (t *Thread) redirected() {
	if !t.Redirected {
		return
	}
	t.Redirected = false
	depth := t.M.Depth()
	ok := true
	for _, part := t.M.Op(); ok && part == image.Prolog; _, part = t.M.Op() {
		ok = t.step() != machine.Faulted
	}
	if !ok || !t.M.Answer() {
		t.A.Fault("%s: no room for the redirect stub", t.A.Name())
	}
	t.stub(depth)
}

// Signal runs a function of the system's image as a signal's handler (Linux), on
// t's stack or on its alternate one. The handler returns to the trampoline, below
// which is the kernel's frame. Signal returns false if there is no room on the stack.
func (t *Thread) Signal(handler string, body func()) bool {
	_, f := t.W.Kit.Lookup(handler)
	before := t.M.Depth()
	if !t.M.Interrupt(t.W.Kit.System, f) {
		return false
	}
	t.toCall()
	t.A.Yield("handles a signal")
	if body != nil {
		body()
	}
	for t.M.Depth() > before {
		t.leave(t.M.Depth())
	}
	return true
}
