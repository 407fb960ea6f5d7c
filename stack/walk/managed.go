package walk

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// isManaged looks up the ip in the runtime's tables, unless it lies in a native module: the tables are read
// from the other process, which takes several system calls.
func (w *Walker) isManaged() bool {
	if w.Code == nil || w.inNativeModule(w.at.Address().Lookup()) {
		return false
	}
	_, ok := w.Code.Function(w.at.Address())
	return ok
}

// inNativeModule reports whether an address lies in an ELF image. Any other mapped file may hold precompiled
// managed code.
func (w *Walker) inNativeModule(at uint64) bool {
	t := w.Unmanaged.Table()
	if t == nil {
		return false
	}
	i := t.Find(at)
	return i >= 0 && t.At(i).ELF != nil && !t.IsManaged(at)
}

// managed steps over consecutive managed frames.
func (w *Walker) managed(c *Capture) unwind.Stop {
	if w.Code == nil {
		return unwind.NoInfo
	}
	w.ManagedFrames = true
	for {
		trust := w.at.Trust
		if trust == unwind.TrustOutside {
			// The code is outside all modules, but not a guess: if the tables do not know it, the step fails.
			w.at.Trust = unwind.TrustCLR
		}
		n, stop := w.methods()
		if n == 0 {
			stop = w.method(trust)
		}
		if stop != unwind.StopNone {
			return stop
		}
		if w.Regs.IP() == w.HijackStub && w.HijackStub != 0 && !w.trueReturn(c) {
			return unwind.BadInfo
		}
		if !w.isManaged() {
			return unwind.StopNone
		}
	}
}

// methods steps over consecutive methods whose rules are cached, and returns their number.
func (w *Walker) methods() (n int, stop unwind.Stop) {
	room := w.block[:]
	if w.Visit != nil {
		w.from.Copy(&w.Regs)
		room = room[:1]
	}
	n, ids := w.Code.Walk(&w.at, &w.mem, &w.bounds, room)
	for i := range room[:n] {
		if w.n >= w.MaxFrames-1 && !w.dropMiddle() {
			return n, unwind.Limit
		}
		f, g := &room[i], w.add()
		g.IP, g.SP, g.FP, g.Function, g.Module = f.IP, f.SP, f.FP, ids[f.Module], -1
		g.Kind, g.Trust, g.Gap, g.Exact = unwind.KindManaged, f.Trust, merge.GapNone, f.Exact
		if w.Visit != nil {
			w.Visit(g, w.n-1, &w.from, w.Regs.SP(), &w.mem)
		}
	}
	return n, unwind.StopNone
}

// method steps over one managed frame. If that fails, the frame's trust becomes trust.
func (w *Walker) method(trust unwind.Trust) unwind.Stop {
	f, prev := &w.left, w.at
	w.from.Copy(&w.Regs)
	stop := w.Code.Step(&w.at, &w.mem, &w.bounds, f)
	if stop != unwind.StopNone && stop != unwind.EndOfStack {
		w.at.Trust = trust
		if g := w.frame(f, prev.Trust); g.Kind == unwind.KindManaged && g.Function != 0 {
			w.put(g) // its caller is unknown, but the method is not
		}
		return stop
	}
	if stop == unwind.StopNone &&
		(w.Regs.SP() < w.from.SP()+w.least(prev.Exact) || w.bounds.High != 0 && w.Regs.SP() > w.bounds.High) {
		w.Regs.Copy(&w.from)
		w.at = prev
		return unwind.NoProgress
	}
	if !w.put(w.frame(f, prev.Trust)) {
		return unwind.Limit
	}
	if w.Visit != nil {
		w.Visit(&w.out[w.n-1], w.n-1, &w.from, w.Regs.SP(), &w.mem)
	}
	return stop
}

// frame converts a frame of the runtime's code and looks up its method.
func (w *Walker) frame(f *unwind.Frame, t unwind.Trust) merge.Frame {
	g := merge.Frame{IP: f.IP, SP: f.SP, FP: f.FP, Module: -1, Kind: f.Kind, Trust: t, Exact: f.Exact}
	id, ok := w.Code.Function(g.Address())
	if g.Function = id; ok && id == 0 {
		g.Kind = unwind.KindStub
	}
	return g
}

// least returns the least increase of the stack pointer from a managed frame to its caller, in bytes: the
// return address on x86-64, the frame record on ARM64 (0 in an interrupted frame).
func (w *Walker) least(exact bool) uint64 {
	switch {
	case w.Regs.Arch == context.ArchAMD64:
		return 8
	case exact:
		return 0
	}
	return 16
}

// maxUnreadFrame bounds the words of a frame that are searched for another return address.
const maxUnreadFrame = 1 << 12

// stepUnread steps out of a method whose description a core lacks. On Linux, the runtime's compiler gives
// most methods with calls a frame pointer (ETW_EBP_FRAMED in jit/targetamd64.h of .NET 9). A small method has
// none, and its return address is the lowest on the stack: if another one is below the frame pointer, the
// step fails. A funclet has the frame pointer of its method, so the step leaves both. All frames below are
// doubtful.
func (w *Walker) stepUnread() bool {
	if w.Missing == nil || w.Code == nil || w.at.Exact || w.Regs.Arch != context.ArchAMD64 ||
		!w.Missing(w.Regs.IP()) || !w.framed() {
		return false
	}
	r := &w.Regs.AMD64
	next, ok := w.mem.Word(r.FP())
	ra, found := w.mem.Word(r.FP() + 8)
	if !ok || !found || !w.isMethod(ra) && !w.inNativeModule(ra-1) {
		return false
	}
	if w.n > 0 && w.out[w.n-1].IP == r.RIP && w.out[w.n-1].SP == r.SP() {
		w.n-- // the native walker has ended at this frame
	}
	g := w.frame(&unwind.Frame{IP: r.RIP, SP: r.SP(), FP: r.FP()}, w.at.Trust)
	g.Kind = unwind.KindManaged
	if !w.put(g) {
		return false
	}
	r.RIP, r.GPR[context.RSP], r.GPR[context.RBP] = ra, r.FP()+16, next
	r.Known = 1<<context.RSP | 1<<context.RBP
	w.at.Reached(false, unwind.TrustFramePointer)
	return true
}

// framed reports whether RBP may be the frame pointer of the current frame: it is above the stack pointer,
// and no stack word between the two is an address in a method.
func (w *Walker) framed() bool {
	fp, sp := w.Regs.FP(), w.Regs.SP()
	if w.Regs.AMD64.Known>>context.RBP&1 == 0 || fp&7 != 0 || fp < sp || (fp-sp)/8 > maxUnreadFrame ||
		w.bounds.High != 0 && fp+16 > w.bounds.High {
		return false
	}
	for ; sp < fp; sp += 8 {
		if v, ok := w.mem.Word(sp); !ok || w.isMethod(v) {
			return false
		}
	}
	return true
}

// isMethod reports whether a word is an address in a method, described or not.
func (w *Walker) isMethod(v uint64) bool {
	if v < 1<<16 || w.inNativeModule(v-1) {
		return false
	}
	id, ok := w.Code.Function(unwind.ReturnAddress(v))
	return ok && id != 0 || !ok && w.Missing(v)
}

// leaveRestore steps out of the runtime's ClrRestoreNonvolatileContextWorker, whose call frame information is
// wrong.
func (w *Walker) leaveRestore() {
	r := &w.Regs.AMD64
	saved, ok := w.mem.Word(r.SP())
	ra, found := w.mem.Word(r.SP() + 8)
	if !ok || !found || w.Regs.Arch != context.ArchAMD64 {
		return
	}
	f := unwind.Frame{IP: r.RIP, SP: r.SP(), FP: r.FP(), CFA: r.SP() + 16, Kind: unwind.KindNative,
		Trust: w.at.Trust, Exact: true, Module: int32(w.Unmanaged.Table().Find(r.RIP))}
	w.put(merge.Unmanaged(&f))
	r.RIP, r.GPR[context.RSP], r.GPR[context.RBP] = ra, f.CFA, saved
	r.Known = 1<<context.RSP | 1<<context.RBP // the function has loaded some of the others
	w.at.Reached(false, unwind.TrustCFI)
}
