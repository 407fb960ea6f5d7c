package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// matrix counts suspensions by verdict and HRESULT, and the results of their samples.
type matrix struct {
	tries                    map[[2]string]int // suspensions by verdict and result, including repeated ones
	cells                    map[seed.Verdict]map[clr.HRESULT]int
	complete                 map[seed.Verdict]map[clr.HRESULT]int
	gaps                     map[merge.Gap]int
	total, whole, doubtful   int
	seedable, seedableWhole  int
	blocks, mismatches, lost int // unmanaged blocks between managed frames of S_OK stacks
	byFP                     int // blocks that reached a managed frame's FP, but not its SP
	outside                  int // samples of threads in code that is not part of Windows
	impossible               int // stacks that their thread cannot have
	redirected               int // samples of threads that a collection redirected while they were suspended
	shown                    int
}

func newMatrix() *matrix {
	return &matrix{tries: map[[2]string]int{}, cells: map[seed.Verdict]map[clr.HRESULT]int{},
		complete: map[seed.Verdict]map[clr.HRESULT]int{}, gaps: map[merge.Gap]int{}}
}

// count adds a run's suspensions.
func (m *matrix) count(f *export.Recording) {
	for _, try := range f.Tries {
		m.tries[[2]string{try.Verdict, try.Result}] += int(try.Count)
	}
}

// inWine recognises threads interrupted in the Unix part of a system call, which Windows does not have: the
// IP of the only frame is in no image, where the system maps Unix libraries.
func inWine(s *raw.Sample) bool {
	const unixLibraries = 0x7f
	return len(s.Frames) > 0 && s.Frames[0].Module < 0 && s.Frames[0].Trust == unwind.TrustContext &&
		s.Frames[0].IP>>40 == unixLibraries
}

func (m *matrix) add(t *testing.T, s *raw.Sample) {
	t.Helper()
	v, hr := s.Result.Verdict, s.Capture.Result
	if m.cells[v] == nil {
		m.cells[v], m.complete[v] = map[clr.HRESULT]int{}, map[clr.HRESULT]int{}
	}
	m.total++
	m.cells[v][hr]++
	whole := s.Result.Gap == merge.GapNone
	if whole {
		m.whole++
		m.complete[v][hr]++
	} else {
		m.gaps[s.Result.Gap]++
		if inWine(s) {
			m.outside++
		} else {
			m.show(t, s, "a stack with a gap")
		}
	}
	if s.Result.Doubtful > 0 {
		m.doubtful++
	}
	if v == seed.NotNeeded && s.Capture.Seeded {
		m.redirected++
	}
	if v.Usable() {
		m.seedable++
		if whole {
			m.seedableWhole++
		}
	}
	if hr == clr.S_OK {
		m.blocksOf(t, s)
	}
}

// blocksOf checks the merged stack independently of the merger. Every managed frame that the CLR reported
// must be in the stack, in order. The unmanaged frames above it must end at its stack pointer, or at its
// frame pointer if it has its own.
func (m *matrix) blocksOf(t *testing.T, s *raw.Sample) {
	t.Helper()
	at, afterMarker := 0, true // the top of the stack is a block too, unless it is managed
	for i := range s.Capture.Frames {
		f := &s.Capture.Frames[i]
		if f.Marker() {
			afterMarker = true
			continue
		}
		j, bySP := place(s, at, i)
		if j < 0 {
			m.lost++
			m.show(t, s, fmt.Sprintf("the CLR's frame %d is not in the stack", i))
			return
		}
		if afterMarker && j > 0 && s.Frames[j-1].Kind == unwind.KindNative {
			m.blocks++
			if !bySP {
				m.byFP++
			}
			if !bySP && !ownFP(s, i) {
				m.mismatches++
				m.show(t, s, fmt.Sprintf("the walk came to sp %#x fp %#x, the CLR says sp %#x fp %#x",
					s.Frames[j].SP, s.Frames[j].FP, f.SP, f.FP))
			}
		}
		at, afterMarker = j+1, false
	}
}

// place finds the CLR's i-th frame in the merged stack, from index at: by its stack pointer, else by its
// frame pointer. -1 if it is missing.
func place(s *raw.Sample, at, i int) (j int, bySP bool) {
	f := &s.Capture.Frames[i]
	for j := at; j < len(s.Frames); j++ {
		if g := &s.Frames[j]; g.Function == f.Function && g.SP == f.SP {
			return j, true
		}
	}
	for j := at; j < len(s.Frames); j++ {
		if g := &s.Frames[j]; g.Function == f.Function && g.FP == f.FP && f.FP != 0 {
			return j, false
		}
	}
	return -1, false
}

// ownFP reports whether the CLR's i-th frame has its own frame pointer: its caller has another.
func ownFP(s *raw.Sample, i int) bool {
	return i+1 < len(s.Capture.Frames) && s.Capture.Frames[i+1].FP != s.Capture.Frames[i].FP
}

func (m *matrix) show(t *testing.T, s *raw.Sample, why string) {
	t.Helper()
	if m.shown++; m.shown > 5 {
		return
	}
	t.Logf("%s; verdict %v, %v, gap %v\n%s", why, s.Result.Verdict,
		s.Capture.Result, s.Result.Gap, dumpWindows(s))
}

func dumpWindows(s *raw.Sample) string {
	var b strings.Builder
	for i := range s.Frames {
		f, name := &s.Frames[i], ""
		switch {
		case f.Kind == unwind.KindGap:
			name = f.Gap.String()
		case f.Function != 0:
			name = fmt.Sprintf("function %#x", uint64(f.Function))
		case f.Module >= 0 && int(f.Module) < len(s.Images):
			im := &s.Images[f.Module]
			name = fmt.Sprintf("%s+%#x", im.Path[strings.LastIndexByte(im.Path, '\\')+1:], f.IP-im.Bias)
		}
		fmt.Fprintf(&b, "  %-8v %-13v ip %#x sp %#x fp %#x %s\n", f.Kind, f.Trust, f.IP, f.SP, f.FP, name)
	}
	b.WriteString("  the CLR says:\n")
	for i := range s.Capture.Frames {
		f := &s.Capture.Frames[i]
		fmt.Fprintf(&b, "  function %#-16x ip %#x sp %#x fp %#x\n", uint64(f.Function), f.IP, f.SP, f.FP)
	}
	fmt.Fprintf(&b, "  registers %#x, stack from %#x\n", s.Capture.Regs.AMD64.GPR, s.Capture.Stack.Addr)
	return b.String()
}

func (m *matrix) print(t *testing.T, title string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%-14s %-42s %8s %9s\n", title, "verdict", "DoStackSnapshot", "samples", "complete")
	for v := range seed.VerdictCount {
		row := m.cells[seed.Verdict(v)]
		for _, hr := range slices.Sorted(maps.Keys(row)) {
			fmt.Fprintf(&b, "%-14v %-42v %8d %9d\n", seed.Verdict(v), hr, row[hr],
				m.complete[seed.Verdict(v)][hr])
		}
	}
	fmt.Fprintf(&b, "%-57s %8d %9d\n", "all", m.total, m.whole)
	fmt.Fprintf(&b, "gaps %v, %d of them in Wine's system calls, %d stacks rest on a guess, %d threads were redirected under the sampler\n", m.gaps, m.outside, m.doubtful, m.redirected)
	fmt.Fprintf(&b, "with a seed %d, complete %.2f %%; %d blocks above managed frames (%d by frame pointer), %d mismatches, %d frames of the CLR lost",
		m.seedable, percent(m.seedableWhole, m.seedable), m.blocks, m.byFP, m.mismatches, m.lost)
	t.Log(b.String())
	m.printTries(t, title)
}

// printTries prints the suspensions, including repeated ones.
func (m *matrix) printTries(t *testing.T, title string) {
	t.Helper()
	if len(m.tries) == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%-14s %-42s %8s\n", title, "verdict", "DoStackSnapshot", "tries")
	keys := slices.SortedFunc(maps.Keys(m.tries),
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	all := 0
	for _, k := range keys {
		fmt.Fprintf(&b, "%-14s %-42s %8d\n", k[0], k[1], m.tries[k])
		all += m.tries[k]
	}
	fmt.Fprintf(&b, "%-57s %8d", "all", all)
	t.Log(b.String())
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// verdict checks the requirements for a real runtime.
func (m *matrix) verdict(t *testing.T, want int) {
	t.Helper()
	expect.True(t, m.total >= want, "%d samples, want %d", m.total, want)
	top := m.cells[seed.NotNeeded]
	for hr, n := range top {
		expect.Equal(t, hr, clr.S_OK, "managed on top: %d times", n)
	}
	// With managed code on top, only two things may make a try fail: a lock of the CLR, or the start of a
	// collection (rows 7 to 11 of the table).
	for k, n := range m.tries {
		managed, unsafe := k[0] == seed.NotNeeded.String(),
			k[1] == clr.CORPROF_E_STACKSNAPSHOT_UNSAFE.String()
		if managed && k[1] != clr.S_OK.String() && (!unsafe || n > 1+m.total/500) {
			t.Errorf("managed on top: %s %d times, and tried again", k[1], n)
		}
	}
	expect.True(t, len(top) > 0 && m.cells[seed.Found][clr.S_OK] != 0 && m.blocks != 0,
		"no managed code on top, no seed found, or no block walked: the threads were not what they should be")
	expect.True(t, m.mismatches+m.lost <= 0 && m.gaps[merge.GapMismatch]+m.gaps[merge.GapLostManaged] <= 0,
		"%d mismatches, %d frames lost, gaps %v", m.mismatches, m.lost, m.gaps)
	if p := percent(m.seedableWhole, m.seedable); p < 97 {
		t.Errorf("%.2f %% of the samples with a seed are complete, want 97", p)
	}
}
