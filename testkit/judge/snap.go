package judge

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// stack is the result of a walk, by single steps and as a whole.
type stack struct {
	frames   []unwind.Frame
	stop     unwind.Stop
	walked   []unwind.Frame // by Walk
	disagree string         // where Walk and Step differ, "" if nowhere
	// value gives a register in frame i, and whether the walker knows it.
	value func(i int, name string) (v uint64, known bool)
}

// disagreement sets st.disagree if a whole walk differs from the single steps. stop is the reason
// why the walk ended. same is true if both ended with the same registers.
func (st *stack) disagreement(stop unwind.Stop, same bool) {
	for i := range min(len(st.frames), len(st.walked)) {
		if st.frames[i] != st.walked[i] {
			st.disagree = fmt.Sprintf("Walk's frame %d is not Step's", i)
			return
		}
	}
	switch {
	case len(st.frames) != len(st.walked):
		st.disagree = fmt.Sprintf("Walk gives %d frames, Step %d", len(st.walked), len(st.frames))
	case stop != st.stop:
		st.disagree = fmt.Sprintf("Walk ends with %s, Step with %s", stop, st.stop)
	case !same:
		st.disagree = "Walk leaves other registers than Step"
	}
}

// guess reports whether a frame is doubtful. A frame outside all modules is no guess, because the
// truth also has such frames.
func guess(f unwind.Frame) bool { return f.Trust.Doubtful() && f.Trust != unwind.TrustOutside }

// doubtful reports whether one of the first n frames is a guess.
func (st *stack) doubtful(n int) bool { return slices.ContainsFunc(st.frames[:n], guess) }

// Snapshots judges the stacks of one traced program.
func Snapshots(s *Score, p *snap.Program) error {
	walk, err := walkerFor(p.Arch)
	if err != nil {
		return err
	}
	for i := range p.Snapshots {
		if err := s.snapshot(p, &p.Snapshots[i], walk); err != nil {
			s.fault(err)
		}
	}
	return nil
}

// lax lists the classes whose stacks cannot be found by unwind data alone.
var lax = map[string]string{
	"nocfi_frame":       "a frame without unwind data: refused = not all frames, none wrong without a mark of doubt",
	"cfi_misleads":      "unwind data contradicts the machine: not scored, refused = differs",
	"context_rewritten": "not scored, refused = differs",
}

func (r *Score) snapshot(p *snap.Program, s *snap.Snapshot, walk walker) error {
	tab, err := p.Table(s)
	if err != nil {
		return err
	}
	mem, err := p.Window(s)
	if err != nil {
		return err
	}
	if _, err := p.DropGhosts(s); err != nil {
		return err
	}
	st, err := walk(s, tab, mem)
	if err != nil {
		return err
	}
	note, isLax := lax[s.Class]
	t := r.tally(s.Class, !isLax)
	t.Note = note
	v, good, why := judge(s, st)
	t.RightFrames += good
	t.Frames += len(s.Frames)
	r.count(t, v, func() Mismatch { return stackMismatch(p, s, st, tab, good, why) })
	return nil
}

// judge compares a walk with the truth. good is the number of right frames from the leaf on. v is
// the verdict for the snapshot's class, and why the reason if it is not right.
func judge(s *snap.Snapshot, st *stack) (v verdict, good int, why string) {
	certain := 0
	for i := range st.frames {
		if i < len(s.Frames) && good == i {
			d := differs(s, i, st)
			if d == "" {
				good++
				continue
			}
			why = d
		}
		if !guess(st.frames[i]) {
			certain++
		}
	}
	all := good == len(s.Frames)
	switch {
	case st.disagree != "":
		return wrong, good, st.disagree
	case all && strings.HasPrefix(s.Class, "cfi_exact") && st.doubtful(good):
		return refused, good, "a frame that unwind data gives is marked doubtful"
	case s.Class == "cfi_misleads" || s.Class == "context_rewritten":
		if all {
			return right, good, ""
		}
		return refused, good, why
	case all && certain == 0 && (s.Class != "cfi_exact" || len(st.frames) == good):
		return right, good, ""
	case certain > 0:
		if all {
			why = fmt.Sprintf("%d frames too many", certain)
		}
		return wrong, good, why
	}
	if why == "" {
		why = "the walk ended: " + st.stop.String()
	}
	return refused, good, why
}

// differs compares frame i with the truth. It returns "" if the frame is right.
func differs(s *snap.Snapshot, i int, st *stack) string {
	want, f := &s.Frames[i], &st.frames[i]
	pc := uint64(want.PC)
	if s.SteppedOver(i) {
		pc += 4
	}
	if f.IP != pc {
		return "pc"
	}
	if want.SP != nil && f.SP != uint64(*want.SP) {
		return "sp"
	}
	if f.Exact != (want.Kind != "ret") && want.Kind != "tramp" {
		return "exact"
	}
	if s.DisputedFrom != nil && i >= *s.DisputedFrom {
		return ""
	}
	for name, v := range want.Regs {
		got, known := st.value(i, name)
		if known && got != uint64(v) {
			return name
		}
		if !known && !f.Trust.Doubtful() {
			return name + " unknown"
		}
	}
	return ""
}

// stackMismatch describes a wrong walk. It shows the expected and the walked frames side by
// side. good is the number of right frames. The step out of the last right frame was wrong, so
// the code and the rows of that frame are shown too.
func stackMismatch(p *snap.Program, s *snap.Snapshot, st *stack, tab *module.Table,
	good int, why string) Mismatch {
	m := Mismatch{ID: s.ID, Where: fmt.Sprintf("%s, frame %d of %d", s.Class, good, len(s.Frames)),
		Why: why + "; walk ended: " + st.stop.String()}
	for i := 0; i < max(len(s.Frames), len(st.frames)) && i < good+4; i++ {
		m.Values = append(m.Values, Pair{fmt.Sprintf("frame %d", i), wantFrame(s, i), gotFrame(st, i)})
	}
	m.Values = append(m.Values, frameRegisters(s, st, good)...)
	at := max(good-1, 0)
	if at < len(st.frames) {
		f := &st.frames[at]
		m.Code, m.Info = around(p.Arch, tab, f)
	}
	return m
}

func wantFrame(s *snap.Snapshot, i int) string {
	if i >= len(s.Frames) {
		return "-"
	}
	f := &s.Frames[i]
	sp := "?"
	if f.SP != nil {
		sp = fmt.Sprintf("%x", uint64(*f.SP))
	}
	return fmt.Sprintf("%x sp %s %s %s", uint64(f.PC), sp, f.Kind, f.Func)
}

func gotFrame(st *stack, i int) string {
	if i >= len(st.frames) {
		return "-"
	}
	f := &st.frames[i]
	return fmt.Sprintf("%x sp %x %s", f.IP, f.SP, f.Trust)
}

func frameRegisters(s *snap.Snapshot, st *stack, i int) []Pair {
	if i >= len(s.Frames) || i >= len(st.frames) {
		return nil
	}
	var out []Pair
	for name, v := range s.Frames[i].Regs {
		got, known := st.value(i, name)
		text := fmt.Sprintf("%x", got)
		if !known {
			text = "unknown"
		}
		out = append(out, Pair{name, fmt.Sprintf("%x", uint64(v)), text})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// around returns the code at a frame and the rows of its address.
func around(arch string, tab *module.Table, f *unwind.Frame) (code, info []string) {
	i := tab.Find(f.Lookup())
	if i < 0 {
		return nil, []string{fmt.Sprintf("%x lies in no module", f.Lookup())}
	}
	mod := tab.At(i)
	a := context.ArchAMD64
	if arch == "aarch64" {
		a = context.ArchARM64
	}
	info = []string{mod.Path}
	if b := mod.Bytes(f.IP, 24); len(b) == 24 {
		code = codeText(a, f.IP, f.IP, b)
	}
	if mod.CFI != nil {
		info = append(info, fdeRows(mod.CFI, f.Lookup()-mod.Bias)...)
	}
	return code, info
}

// walker walks one snapshot.
type walker func(s *snap.Snapshot, tab *module.Table, mem *memory.Window) (*stack, error)

func walkerFor(arch string) (walker, error) {
	switch arch {
	case "x86_64":
		return newAMD64Walker(), nil
	case "aarch64":
		return newARM64Walker(), nil
	}
	return nil, fmt.Errorf("architecture %q: %w", arch, ErrFormat)
}
