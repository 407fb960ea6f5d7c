package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Check compares a merged stack with the truth: the frames of the thread when its
// stack was copied, leaf first. Five things must hold:
//
//   - The result agrees with its frames (miscounted).
//   - The verdict on the seed is possible (misjudged).
//   - No guess comes before a frame of the CLR that lies above it on the stack
//     (outOfOrder).
//   - Each frame that claims to be sure is in the truth, in the truth's order, with
//     its place and its labels (misplaced, mislabeled). A doubtful frame may be
//     wrong, but one that is in the truth has its labels too.
//   - Nothing is missing, with two exceptions: after a gap, and after a doubtful frame
//     that is not in the truth. Frames may be missing there up to the next true frame.
//
// The CLR does not report dynamic methods and methods that it hides. Where such a
// frame is among managed code, only the runtime's own tables could know of it.
// Unreported counts those that a merge without these tables lacks; they are not
// missing.
func (h *Host) Check(truth []machine.Frame, out []merge.Frame,
	res *merge.Result) (unreported int, err error) {
	if err := miscounted(out, res); err != nil {
		return 0, err
	}
	if err := outOfOrder(out); err != nil {
		return 0, err
	}
	if err := h.misjudged(truth, res.Verdict); err != nil {
		return 0, err
	}
	c := comparison{h: h, truth: truth}
	for i := range out {
		if why := c.take(&out[i]); why != "" {
			return c.unreported, fmt.Errorf("frame %d: %s", i, why)
		}
	}
	return c.unreported, c.end()
}

// comparison walks down a merged stack and the truth together.
type comparison struct {
	h          *Host
	truth      []machine.Frame
	next       int  // index in truth of the first frame that is not matched yet
	loose      bool // frames may be missing here
	unreported int
}

// take compares the next frame of the merged stack. It returns why the frame is wrong, or
// "" if it is not.
func (c *comparison) take(f *merge.Frame) string {
	if f.Kind == unwind.KindGap {
		c.loose = true
		return ""
	}
	first, skipped := "the stack has ended", 0
	for i := c.next; i < len(c.truth); i++ {
		t := &c.truth[i]
		why := c.h.misplaced(t, f)
		if why == "" {
			c.next, c.loose, c.unreported = i+1, false, c.unreported+skipped
			return c.h.mislabeled(c.truth, i, f)
		}
		if i == c.next {
			first = why
		}
		if c.h.unreported(c.truth, i) {
			skipped++
		} else if !c.loose {
			first = why
			break
		}
	}
	if !f.Trust.Doubtful() {
		return "not in the truth from here on: " + first
	}
	c.loose = true
	return ""
}

// end returns an error if the stack ends above the root.
func (c *comparison) end() error {
	if c.loose { // the gap may replace all that follows
		return nil
	}
	for c.next < len(c.truth) && c.h.unreported(c.truth, c.next) {
		c.next++
		c.unreported++
	}
	if c.next == len(c.truth) {
		return nil
	}
	return fmt.Errorf("the stack ends above %s, %d frames are missing",
		c.truth[c.next].Func.Name, len(c.truth)-c.next)
}

// unreported reports whether frame i of the truth is below managed code and of a kind
// that the CLR does not report.
func (h *Host) unreported(truth []machine.Frame, i int) bool {
	if i == 0 || !h.w.CLR.Codes.Managed(truth[i-1].State.PC) {
		return false
	}
	kind, _ := h.w.CLR.Codes.At(truth[i].State.PC)
	return kind == vm.Dynamic || kind == vm.Hidden
}

// CheckSeed compares a verdict, and the seed of the verdict Found, with the truth. The
// seed must be the top-most managed frame with every register that functions preserve.
func (h *Host) CheckSeed(truth []machine.Frame, v seed.Verdict, st *machine.State) error {
	if err := h.misjudged(truth, v); err != nil || v != seed.Found {
		return err
	}
	top := h.topManaged(truth)
	want := &truth[top].State
	if st.PC != want.PC {
		return fmt.Errorf("the seed's ip is %#x, truly %#x (%s)", st.PC, want.PC, truth[top].Func.Name)
	}
	for _, r := range h.preserved() {
		if st.R[r] != want.R[r] {
			return fmt.Errorf("the seed's register %d is %#x, truly %#x (%s)", r, st.R[r],
				want.R[r], truth[top].Func.Name)
		}
	}
	for r := range want.V {
		if h.vectorPreserved(r) && st.V[r] != want.V[r] {
			return fmt.Errorf("the seed's vector register %d is %#x, truly %#x (%s)", r, st.V[r],
				want.V[r], truth[top].Func.Name)
		}
	}
	return nil
}

// misjudged returns an error if a verdict contradicts the truth.
func (h *Host) misjudged(truth []machine.Frame, v seed.Verdict) error {
	top := h.topManaged(truth)
	switch {
	case v == seed.NoManaged && top < len(truth):
		return fmt.Errorf("no managed frame, says the verdict; there is %s", truth[top].Func.Name)
	case v == seed.NotNeeded && top != 0:
		return fmt.Errorf("the top frame is managed, says the verdict; it is %s", truth[0].Func.Name)
	case v == seed.Found && top == len(truth):
		return errors.New("a seed was found, says the verdict; there is no managed frame")
	}
	return nil
}

// topManaged is the index of the first managed frame, or len(truth).
func (h *Host) topManaged(truth []machine.Frame) (top int) {
	for top < len(truth) && !h.w.CLR.Codes.Managed(truth[top].State.PC) {
		top++
	}
	return top
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

// story prints both stacks for people.
func (h *Host) story(truth []machine.Frame, out []merge.Frame) string {
	var b strings.Builder
	sp, fp := h.w.Arch.SP(), h.w.Arch.FP()
	for i := range truth {
		t := &truth[i]
		fmt.Fprintf(&b, "\n  true %2d %-16s ip %#x sp %#x fp %#x exact %v", i, t.Func.Name, t.State.PC,
			t.State.R[sp], t.State.R[fp], t.Exact)
	}
	for i := range out {
		f := &out[i]
		fmt.Fprintf(&b, "\n  said %2d %-16s ip %#x sp %#x fp %#x exact %v %v", i, h.name(f),
			f.IP, f.SP, f.FP, f.Exact, f.Trust)
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
