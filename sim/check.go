package sim

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Check holds a merged stack against the truth: the frames of the thread when
// its stack was copied, leaf first. A complete stack has every one of them and
// no other; one with gaps has no frame that is not in the truth, in its order.
// Frames that say of themselves that they are doubtful may be wrong,
// but none may be of a place that the CLR's report has not reached yet. Behind a
// wrong one a complete stack may lack frames, and must invent none.
//
// By contract the CLR walks through dynamic methods, and through methods that it
// hides, without a word. Where such a frame has called managed code, nobody but
// the runtime's own tables could know of it: what it called is reported itself,
// or is a stub that has no frame yet. Unreported counts them, they are not missing
// unless the merge has those tables.
func (h *Host) Check(truth []machine.Frame, out []merge.Frame, res *merge.Result) (unreported int, err error) {
	if res.Complete() {
		return h.whole(truth, out)
	}
	return 0, h.part(truth, out)
}

func (h *Host) whole(truth []machine.Frame, out []merge.Frame) (unreported int, err error) {
	i, j := 0, 0
	for i < len(truth) && j < len(out) {
		why := h.differs(&truth[i], &out[j])
		switch {
		case out[j].Kind == unwind.KindGap:
			return unreported, fmt.Errorf("frame %d of a stack said to be complete is a gap", j)
		case why == "":
			j++
		case h.unreported(truth, i):
			unreported++
		case out[j].Trust.Doubtful():
			return unreported, h.part(truth[i:], out[j:])
		default:
			return unreported, fmt.Errorf("frame %d: %s", j, why)
		}
		i++
	}
	if i != len(truth) || j != len(out) {
		return unreported, fmt.Errorf("a stack said to be complete has %d frames, the true one %d, of which the CLR does not report %d", len(out), len(truth), unreported)
	}
	return unreported, nil
}

// unreported reports whether frame i of the truth is in the midst of managed
// code and of a kind that the CLR says nothing of.
func (h *Host) unreported(truth []machine.Frame, i int) bool {
	if i == 0 || !h.w.CLR.Codes.Managed(truth[i-1].State.PC) {
		return false
	}
	kind, _ := h.w.CLR.Codes.At(truth[i].State.PC)
	return kind == vm.Dynamic || kind == vm.Hidden
}

// CheckSeed holds the verdict on a seed, and a seed that was found, against the
// truth: it must be the top-most managed frame with every register that
// functions preserve.
func (h *Host) CheckSeed(truth []machine.Frame, v seed.Verdict, st *machine.State) error {
	top := 0
	for top < len(truth) && !h.w.CLR.Codes.Managed(truth[top].State.PC) {
		top++
	}
	switch {
	case v == seed.NoManaged && top < len(truth):
		return fmt.Errorf("no managed frame, says the verdict; there is %s", truth[top].Func.Name)
	case v == seed.NotNeeded && top != 0:
		return fmt.Errorf("the top frame is managed, says the verdict; it is %s", truth[0].Func.Name)
	case v != seed.Found:
		return nil
	case top == len(truth):
		return fmt.Errorf("a seed was found where no managed frame is: ip %#x", st.PC)
	}
	want := &truth[top].State
	if st.PC != want.PC {
		return fmt.Errorf("the seed's ip is %#x, truly %#x (%s)", st.PC, want.PC, truth[top].Func.Name)
	}
	for _, r := range h.preserved() {
		if st.R[r] != want.R[r] {
			return fmt.Errorf("the seed's register %d is %#x, truly %#x (%s)", r, st.R[r], want.R[r], truth[top].Func.Name)
		}
	}
	for r := range want.V {
		if h.vectorPreserved(r) && st.V[r] != want.V[r] {
			return fmt.Errorf("the seed's vector register %d is %#x, truly %#x (%s)", r, st.V[r], want.V[r], truth[top].Func.Name)
		}
	}
	return nil
}

// preserved lists the general registers that functions preserve, SP among them.
func (h *Host) preserved() []image.Reg {
	switch {
	case h.w.Arch == image.ARM64:
		return []image.Reg{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31}
	case h.w.Format() == image.PE:
		return []image.Reg{3, 4, 5, 6, 7, 12, 13, 14, 15}
	}
	return []image.Reg{3, 4, 5, 12, 13, 14, 15}
}

// vectorPreserved: XMM6-XMM15 on Windows, the low halves of V8-V15 on ARM64.
func (h *Host) vectorPreserved(r int) bool {
	if h.w.Arch == image.ARM64 {
		return r >= 8 && r < 16
	}
	return h.w.Format() == image.PE && r >= 6 && r < 16
}

func (h *Host) part(truth []machine.Frame, out []merge.Frame) error {
	if err := outOfOrder(out); err != nil {
		return err
	}
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

// outOfOrder refuses a doubtful frame that stands above one that the CLR reported
// though it lies on the stack behind it: a guess has gone past the CLR's frame, and
// what it found there is found again below. A guessed SP may be too low and is
// never too high.
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
			return fmt.Errorf("frame %d of a stack with gaps, sp %#x, is behind frame %d, which the CLR reported with sp %#x", at, behind, i, f.SP)
		}
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
	case f.Exact && !t.Exact:
		return fmt.Sprintf("%s is said to be interrupted, and has called", t.Func.Name)
	case kind == vm.Method || kind == vm.Hidden:
		if f.Function != id {
			return fmt.Sprintf("function %#x, truly %#x (%s)", f.Function, id, t.Func.Name)
		}
		if f.SP != sp || f.FP != fp || f.IP != t.State.PC {
			return fmt.Sprintf("%s has ip %#x sp %#x fp %#x, truly %#x %#x %#x", t.Func.Name, f.IP, f.SP, f.FP, t.State.PC, sp, fp)
		}
	case f.IP != t.State.PC:
		return fmt.Sprintf("ip %#x, truly %#x (%s)", f.IP, t.State.PC, t.Func.Name)
	case f.SP != sp:
		return fmt.Sprintf("%s has sp %#x, truly %#x", t.Func.Name, f.SP, sp)
	case f.FP != fp && !f.Trust.Doubtful():
		return fmt.Sprintf("%s has fp %#x, truly %#x", t.Func.Name, f.FP, fp)
	}
	return ""
}

// story tells both stacks side by side, for people.
func (h *Host) story(truth []machine.Frame, out []merge.Frame) string {
	var b strings.Builder
	sp, fp := h.w.Arch.SP(), h.w.Arch.FP()
	for i := range truth {
		t := &truth[i]
		fmt.Fprintf(&b, "\n  true %2d %-16s ip %#x sp %#x fp %#x exact %v", i, t.Func.Name, t.State.PC, t.State.R[sp], t.State.R[fp], t.Exact)
	}
	for i := range out {
		f := &out[i]
		fmt.Fprintf(&b, "\n  said %2d %-16s ip %#x sp %#x fp %#x exact %v %v", i, h.name(f), f.IP, f.SP, f.FP, f.Exact, f.Trust)
	}
	return b.String()
}

func (h *Host) name(f *merge.Frame) string {
	if f.Kind == unwind.KindGap {
		return "gap: " + f.Gap.String()
	}
	if _, fn := h.w.Find(f.Address().Lookup()); fn != nil {
		return fn.Name
	}
	return "?"
}
