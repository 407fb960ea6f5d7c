package sim

import (
	"fmt"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// miscounted returns an error if a result contradicts its own frames.
func miscounted(out []merge.Frame, res *merge.Result) error {
	first, managed, guess := merge.GapNone, 0, -1
	for i := range out {
		f := &out[i]
		if f.Kind == unwind.KindGap {
			switch {
			case f.Gap == merge.GapNone:
				return fmt.Errorf("frame %d is a gap without a reason", i)
			case i > 0 && out[i-1].Kind == unwind.KindGap:
				return fmt.Errorf("frame %d is a gap behind a gap", i)
			case first == merge.GapNone:
				first = f.Gap
			}
			continue
		}
		switch {
		case f.Trust == unwind.TrustCLR:
			guess = -1 // confirmed
		case f.Trust.Doubtful() && guess < 0:
			guess = i
		}
		if f.Kind == unwind.KindManaged || f.Kind == unwind.KindStub {
			managed++
		}
	}
	doubtful := 0
	for i := range out {
		if guess >= 0 && i >= guess && out[i].Kind != unwind.KindGap {
			doubtful++
		}
	}
	switch {
	case res.N != len(out):
		return fmt.Errorf("the result counts %d frames, there are %d", res.N, len(out))
	case res.Gap != first:
		return fmt.Errorf("the result's gap is %q, the stack's first %q", res.Gap, first)
	case res.Hidden != managed-res.Managed:
		return fmt.Errorf("the result counts %d hidden frames, there are %d", res.Hidden, managed-res.Managed)
	case res.Doubtful != doubtful:
		return fmt.Errorf("the result says that %d frames rest on a guess, there are %d",
			res.Doubtful, doubtful)
	}
	return nil
}

// outOfOrder refuses a doubtful frame that comes before one that the CLR reported
// though it lies behind it on the stack. The guess has then gone past the CLR's
// frame, and what it found there is found again below. A guessed SP may be too low
// and is never too high.
func outOfOrder(out []merge.Frame) error {
	behind, at := uint64(0), 0
	for i := range out {
		f := &out[i]
		switch {
		case f.Kind == unwind.KindGap:
		case f.Trust.Doubtful():
			if f.SP > behind {
				behind, at = f.SP, i
			}
		case f.Trust == unwind.TrustCLR && f.Kind == unwind.KindManaged && f.SP < behind:
			return fmt.Errorf("frame %d, sp %#x, is behind frame %d, which the CLR reported with sp %#x", at,
				behind, i, f.SP)
		}
	}
	return nil
}

// misplaced returns how a merged frame's ip, sp, or fp differs from the true one's, or ""
// if it does not. The fp of a doubtful unmanaged frame may differ.
func (h *Host) misplaced(t *machine.Frame, f *merge.Frame) string {
	sp, fp := t.State.R[h.w.Arch.SP()], t.State.R[h.w.Arch.FP()]
	kind, _ := h.w.CLR.Codes.At(t.State.PC)
	method := kind == vm.Method || kind == vm.Hidden
	if f.IP == t.State.PC && f.SP == sp && (f.FP == fp || f.Trust.Doubtful() && !method) {
		return ""
	}
	return fmt.Sprintf("ip %#x sp %#x fp %#x, truly %#x %#x %#x (%s)", f.IP, f.SP, f.FP,
		t.State.PC, sp, fp, t.Func.Name)
}

// mislabeled returns which label of a frame at the place of truth[i] is wrong, or "" if
// none is. Interrupted managed code may lack the mark Exact in two cases. The CLR reported
// it: the CLR does not say whether a method was interrupted. Or the CLR redirected it to
// a stub: the stub looks like a function that the method called.
func (h *Host) mislabeled(truth []machine.Frame, i int, f *merge.Frame) string {
	t := &truth[i]
	id, kind, module := h.labels(t)
	unmarked := h.w.CLR.Codes.Managed(t.State.PC) &&
		(f.Trust == unwind.TrustCLR || i > 0 && !signal(&truth[i-1]))
	switch {
	case f.Function != id:
		return fmt.Sprintf("%s has function %#x, truly %#x", t.Func.Name, f.Function, id)
	case f.Kind != kind:
		return fmt.Sprintf("%s is said to be %v, truly %v", t.Func.Name, f.Kind, kind)
	case f.Module != module:
		return fmt.Sprintf("%s has module %d, truly %d", t.Func.Name, f.Module, module)
	case f.Exact && !t.Exact:
		return t.Func.Name + " is said to be interrupted, and has called"
	case t.Exact && !f.Exact && !unmarked:
		return t.Func.Name + " is said to have called, and was interrupted"
	case f.Gap != merge.GapNone:
		return fmt.Sprintf("%s has the reason of a gap: %v", t.Func.Name, f.Gap)
	case !h.reaches(truth, i, f.Trust):
		return fmt.Sprintf("%s is said to be found by %v", t.Func.Name, f.Trust)
	}
	return ""
}

// labels returns the true labels of a frame. They are its FunctionID (0 if it is no method), its
// kind, and its index in the module table (-1 for code of the CLR).
func (h *Host) labels(t *machine.Frame) (clr.FunctionID, unwind.Kind, int32) {
	code, id := h.w.CLR.Codes.At(t.State.PC)
	switch {
	case code == vm.Method || code == vm.Hidden:
		return id, unwind.KindManaged, -1
	case code == vm.Dynamic || code == vm.Stub:
		return 0, unwind.KindStub, -1
	}
	kind := unwind.KindNative
	if signal(t) {
		kind = unwind.KindSignal
	}
	return 0, kind, int32(h.w.Kit.Table.Find(t.State.PC))
}

func signal(t *machine.Frame) bool { return t.Func.Entry == image.SignalFrame }

// reaches reports whether a step of trust by can have found frame i of the truth. Only
// the leaf is in the context. A frame below unmanaged code is found by the unwind data
// of its image's format, or without any. A frame below managed code is found by the
// CLR's unwind data, which has PE's form on every system. The CLR reports methods and
// the first frame of each unmanaged block.
func (h *Host) reaches(truth []machine.Frame, i int, by unwind.Trust) bool {
	code, _ := h.w.CLR.Codes.At(truth[i].State.PC)
	if i == 0 || by == unwind.TrustContext {
		return i == 0 && (by == unwind.TrustContext || by == unwind.TrustCLR)
	}
	switch by {
	case unwind.TrustNone:
		return false
	case unwind.TrustCLR:
		return code != vm.Dynamic
	case unwind.TrustCFI:
		return h.w.Format() == image.ELF
	case unwind.TrustUnwindInfo:
		return h.w.Format() == image.PE || h.w.CLR.Codes.Managed(truth[i-1].State.PC)
	}
	return true
}
