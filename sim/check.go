package sim

import (
	"fmt"

	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/unwind"
)

// Check holds a merged stack against the truth: the frames of the thread when
// its stack was copied, leaf first. A complete stack has every one of them and
// no other; one with gaps has no frame that is not in the truth, in its order.
// Frames that say of themselves that they are doubtful may be wrong.
func (h *Host) Check(truth []machine.Frame, out []merge.Frame, res *merge.Result) error {
	if res.Complete() {
		return h.whole(truth, out)
	}
	return h.part(truth, out)
}

func (h *Host) whole(truth []machine.Frame, out []merge.Frame) error {
	for i := range min(len(truth), len(out)) {
		if why := h.differs(&truth[i], &out[i]); why != "" {
			if out[i].Trust.Doubtful() {
				return nil
			}
			return fmt.Errorf("frame %d: %s", i, why)
		}
	}
	if len(truth) != len(out) {
		return fmt.Errorf("a stack said to be complete has %d frames, the true one %d", len(out), len(truth))
	}
	return nil
}

func (h *Host) part(truth []machine.Frame, out []merge.Frame) error {
	at := 0
	for i := range out {
		f := &out[i]
		if f.Kind == unwind.KindGap || f.Trust.Doubtful() {
			continue
		}
		for at < len(truth) && h.differs(&truth[at], f) != "" {
			at++
		}
		if at == len(truth) {
			return fmt.Errorf("frame %d of a stack with gaps is invented: ip %#x sp %#x", i, f.IP, f.SP)
		}
		at++
	}
	return nil
}

// differs says how a merged frame is not the true one; "" if it is.
func (h *Host) differs(t *machine.Frame, f *merge.Frame) string {
	sp, fp := t.State.R[h.w.Arch.SP()], t.State.R[h.w.Arch.FP()]
	kind, id := h.w.CLR.Codes.At(t.State.PC)
	switch {
	case f.Kind == unwind.KindGap:
		return "a gap where nothing is missing"
	case kind == vm.Method || kind == vm.Hidden:
		if f.Function != id {
			return fmt.Sprintf("function %#x, truly %#x (%s)", f.Function, id, t.Func.Name)
		}
		if f.SP != sp && f.FP != fp {
			return fmt.Sprintf("%s has sp %#x fp %#x, truly %#x %#x", t.Func.Name, f.SP, f.FP, sp, fp)
		}
	case f.IP != t.State.PC:
		return fmt.Sprintf("ip %#x, truly %#x (%s)", f.IP, t.State.PC, t.Func.Name)
	case f.SP != sp:
		return fmt.Sprintf("%s has sp %#x, truly %#x", t.Func.Name, f.SP, sp)
	}
	return ""
}
