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
		if w.n >= maxFrames-1 {
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
	f, was := &w.left, w.at
	w.from.Copy(&w.Regs)
	stop := w.Code.Step(&w.at, &w.mem, &w.bounds, f)
	if stop != unwind.StopNone && stop != unwind.EndOfStack {
		w.at.Trust = trust
		if g := w.frame(f, was.Trust); g.Kind == unwind.KindManaged && g.Function != 0 {
			w.put(g) // its caller is unknown, but the method is not
		}
		return stop
	}
	if stop == unwind.StopNone &&
		(w.Regs.SP() < w.from.SP()+w.least(was.Exact) || w.bounds.High != 0 && w.Regs.SP() > w.bounds.High) {
		w.Regs.Copy(&w.from)
		w.at = was
		return unwind.NoProgress
	}
	if !w.put(w.frame(f, was.Trust)) {
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
