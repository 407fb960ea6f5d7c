package e2e

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/unwind"
)

// shadow is the record that a thread of Truth.exe keeps of its own stack (truth.h).
type shadow struct {
	scenario uint64
	unstable bool
	entries  []uint64 // root first
}

const shadowMagic = 0x4853574b44454553 // "SEEDWKSH"

// findShadow looks for the shadow in a copied stack.
func findShadow(stack []byte, base uint64) (s shadow, ok bool) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(stack[i:]) }
	for i := int(-base & 7); i+40 <= len(stack); i += 8 {
		if word(i) != shadowMagic || word(i+8) != 1 {
			continue
		}
		depth := word(i + 16)
		if depth > 12000 || uint64(i)+40+8*depth > uint64(len(stack)) {
			continue
		}
		s.scenario, s.unstable = word(i+24), word(i+32) != 0
		for k := range int(depth) {
			s.entries = append(s.entries, word(i+40+8*k))
		}
		return s, true
	}
	return s, false
}

// truthNames reads truth-ids.txt.
func truthNames(t *testing.T) (names map[uint64]string, known map[string]bool) {
	t.Helper()
	f := must.Get(os.Open("../testdata/truth-ids.txt"))(t)
	defer f.Close()
	names, known = map[uint64]string{}, map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var id uint64
		var name string
		if n, _ := fmt.Sscanf(sc.Text(), "%d %s", &id, &name); n == 2 {
			names[id], known[name] = name, true
		}
	}
	must.True(t, len(names) >= 30, "only %d names", len(names))
	return names, known
}

// loadNatives reads libtruth.so's functions with Go's own ELF reader, which is independent of ours.
func loadNatives(t *testing.T, path string) (m perfMap) {
	t.Helper()
	f := must.Get(elf.Open(path))(t)
	defer f.Close()
	for _, s := range must.Get(f.Symbols())(t) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			m = append(m, body{s.Value, s.Size, s.Name, ""})
		}
	}
	m.sort()
	return m
}

// checker compares merged stacks with shadows.
type checker struct {
	ids     map[uint64]string
	known   map[string]bool
	natives perfMap
	methods map[clr.FunctionID]string
	shown   map[merge.Gap]bool // gaps already printed once
	bad     int                // wrong stacks

	want        int            // samples
	first, last uint64         // scenarios that must occur
	whole       int            // one stack in this many may have a gap
	met         map[string]int // how often each kind of stack was among those compared
	table       map[uint64]*tally
	total       int // samples
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	c := &checker{want: wantSamples, first: 1, last: 21, whole: 100, met: map[string]int{},
		table:   map[uint64]*tally{},
		natives: loadNatives(t, need(t, "out", "samples", "libtruth.so")), shown: map[merge.Gap]bool{}}
	c.ids, c.known = truthNames(t)
	return c
}

// chain is those of the merged stack's frames that a shadow can contain, root first.
func (c *checker) chain(s *raw.Sample) []string {
	var out []string
	for i := len(s.Frames) - 1; i >= 0; i-- {
		if name := c.frameName(s, &s.Frames[i]); c.known[name] {
			out = append(out, name)
		}
	}
	return out
}

func (c *checker) frameName(s *raw.Sample, f *merge.Frame) string {
	switch {
	case f.Function != 0:
		name := plain(c.methods[f.Function])
		if method, _, ok := strings.Cut(name, " (lambda"); ok {
			name = method + "(lambda)" // whichever lambda it is
		}
		// of a state machine: distinct from the method that creates it
		name = strings.Replace(name, " (", "(", 1)
		return name
	case f.Module >= 0 && int(f.Module) < len(s.Images):
		if im := &s.Images[f.Module]; strings.TrimSuffix(filepath.Base(im.Path),
			" (deleted)") == "libtruth.so" {
			if b := c.natives.find(unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup() - im.Bias); b != nil {
				name, _, _ := strings.Cut(b.name, ".localalias")
				return name
			}
		}
	}
	return ""
}

// plain is a method's name without type arguments and parameters.
func plain(name string) string {
	name, what, ok := strings.Cut(name, " (")
	name, _, _ = strings.Cut(name, "<")
	if name, _, _ = strings.Cut(name, "("); ok {
		return name + " (" + what
	}
	return name
}

// wrong describes the difference between a stack and its shadow, "" if none. One more frame at the leaf is
// right: a function that has not recorded itself yet, or has already removed itself.
func (c *checker) wrong(got []string, s *shadow) string {
	n := len(s.entries)
	if len(got) != n && len(got) != n+1 {
		return fmt.Sprintf("%d frames for %d entries", len(got), n)
	}
	for i, id := range s.entries {
		if got[i] != c.ids[id] {
			return fmt.Sprintf("frame %d is %s, the shadow says %s", i, got[i], c.ids[id])
		}
	}
	return ""
}

// tally is a line of the table the test prints.
type tally struct {
	samples, complete, checked, unstable, wrong int
	gaps                                        map[merge.Gap]int
}

// wantSamples is the least number of stacks compared; a slow machine needs more runs for it, up to maxRuns.
const (
	wantSamples = 10000
	maxRuns     = 24
)

// recorded compares the samples of a recording.
func (c *checker) recorded(t *testing.T, r *recording) {
	t.Helper()
	c.methods = r.names
	c.compare(t, r.samples)
}

// compare compares every sample and counts the results.
func (c *checker) compare(t *testing.T, samples []*raw.Sample) {
	t.Helper()
	c.total += len(samples)
	for _, s := range samples {
		sh, ok := findShadow(s.Capture.Stack.Data, s.Capture.Stack.Addr)
		if !ok && len(s.Capture.Below.Data) > 0 {
			sh, ok = findShadow(s.Capture.Below.Data, s.Capture.Below.Addr)
		}
		if !ok {
			sh.scenario = 0 // no shadow, or no stack: the thread did not answer
		}
		row := c.table[sh.scenario]
		if row == nil {
			row = &tally{gaps: map[merge.Gap]int{}}
			c.table[sh.scenario] = row
		}
		if g := s.Result.Gap; g != merge.GapNone && !c.shown[g] {
			c.shown[g] = true
			t.Logf("a sample with a gap, %v:\n%s", s.Capture.Result, c.dump(s))
		}
		if why := c.judge(row, s, &sh, ok); why != "" {
			if c.bad++; c.bad <= 5 {
				t.Errorf("scenario %d: %s\n%s", sh.scenario, why, c.dump(s))
			}
		}
	}
}

// sum adds the rows.
func (c *checker) sum() tally {
	total := tally{gaps: map[merge.Gap]int{}}
	for _, r := range c.table {
		total.samples += r.samples
		total.complete += r.complete
		total.checked += r.checked
		total.wrong += r.wrong
		for g, n := range r.gaps {
			total.gaps[g] += n
		}
	}
	return total
}

// few checks a short recording: its number of samples, the percentage of them complete, and that some were
// compared with their threads' records.
func (c *checker) few(t *testing.T, samples, percent int) {
	t.Helper()
	const leastChecked = 40
	sum := c.sum()
	expect.Figures(t, sum.samples >= samples && sum.complete*100 >= sum.samples*percent &&
		sum.checked >= leastChecked,
		"%d samples, want %d; %d whole, want %d %%; %d compared, want %d; %d wrong", sum.samples, samples,
		sum.complete, percent, sum.checked, leastChecked, sum.wrong)
}

func (c *checker) judge(row *tally, s *raw.Sample, sh *shadow, ok bool) string {
	row.samples++
	if s.Result.Gap != merge.GapNone {
		row.gaps[s.Result.Gap]++
		return ""
	}
	row.complete++
	switch {
	case !ok:
		return ""
	case sh.unstable:
		row.unstable++
		return ""
	}
	row.checked++
	got := c.chain(s)
	if readLater(s) { // and the shadow with it: at the sample, the thread may have been at another level
		n := min(len(got), len(sh.entries))
		got, sh.entries = got[:n], sh.entries[:n]
	}
	why := c.wrong(got, sh)
	if why != "" {
		row.wrong++
	} else {
		c.meet(sh)
	}
	return why
}

// readLater reports whether callers of a stack were read after the sample.
func readLater(s *raw.Sample) bool {
	return slices.ContainsFunc(s.Frames, func(f merge.Frame) bool { return f.Trust == unwind.TrustLater })
}

func (c *checker) dump(s *raw.Sample) string {
	var b strings.Builder
	for i := range s.Frames {
		f := &s.Frames[i]
		name := c.frameName(s, f)
		if f.Kind == unwind.KindGap {
			name = f.Gap.String()
		}
		if name == "" && f.Module >= 0 {
			im := &s.Images[f.Module]
			name = fmt.Sprintf("%s+%#x", filepath.Base(im.Path), f.IP-im.Bias)
		}
		fmt.Fprintf(&b, "  %-8v %-13v ip %#x sp %#x fp %#x %s\n", f.Kind, f.Trust, f.IP, f.SP, f.FP, name)
	}
	return b.String()
}

// verdict prints the table, checks it, and returns the sum.
func (c *checker) verdict(t *testing.T) tally {
	t.Helper()
	total := c.sum()
	t.Logf("%8s %8s %9s %8s %9s %6s  gaps", "scenario", "samples", "complete", "checked", "unstable", "wrong")
	for _, k := range slices.Sorted(maps.Keys(c.table)) {
		r := c.table[k]
		expect.Figures(t, k < c.first || k > c.last || r.checked != 0, "%8d %8d %9d %8d %9d %6d  %v", k,
			r.samples, r.complete, r.checked, r.unstable, r.wrong, r.gaps)
	}
	// Whether a thread gets a processor in time to answer depends on the scheduler: with a load of sixteen on
	// two cores 2 % did not.
	unanswered := total.gaps[merge.GapNoAnswer]
	gaps := total.samples - total.complete - unanswered
	t.Logf("%8s %8d %9d %8d %9s %6d  %v", "all", total.samples, total.complete,
		total.checked, "", total.wrong, total.gaps)
	expect.True(t, total.samples >= c.want, "only %d samples, want %d", total.samples, c.want)
	expect.True(t, gaps*c.whole < total.samples,
		"%d of %d samples have gaps, must be below one of %d", gaps, total.samples, c.whole)
	expect.True(t, unanswered*20 < total.samples,
		"%d of %d threads did not answer in time, must be below 5 %%", unanswered, total.samples)
	return total
}

// truths are recordings of the truth program and the requirements for their stacks. At least 99 of 100 are
// whole, and they agree with the threads' own records.
var truths = []struct {
	name, runtime, flags string
	program              string // its arguments
	least                int    // samples, of several recordings if one has fewer
	first, last          uint64 // scenarios that must occur
	says                 string // parts of the summary, separated by bars
	counter              string // counter that must not be 0; "": none
	doubtful             int    // percentage of frames that may be doubtful
}{
	{"suspended", needs.Net9, "--mode snapshot --rate 100", "20", 10000, 1, 21,
		"biased to safe points", "", 100},
	// The runtime publishes no description of its structures. Its tables prove the layout that is known for
	// its release.
	{".NET 8", needs.Net8, "--rate 100", "6", 0, 1, 7, ".NET 8.0.6|from outside|never suspended", "", 100},
	{".NET 8 suspended", needs.Net8, "--rate 100 --mode snapshot", "6", 0, 1, 7,
		".NET 8.0.6|snapshot|biased to safe points", "", 100},
	// musl's libc has no unwind data; this CLR publishes no description, and its own file contains the
	// precompiled code. Its other scenarios crash without us too.
	{"musl", needs.Net9Musl, "--mode probe --rate 250", "8", 1000, 1, 21, "", "", 1},
	// The runtime has replaced return addresses by its own, to stop a thread when its method returns. They
	// are corrected by the data of the Thread that were copied with the stack.
	{"hijacked", needs.Net9, "--mode probe --rate 1000", "5 hijack", 100, 61, 63, "", "returns", 100},
	{"hijacked 10", needs.Net10, "--mode probe --rate 1000", "5 hijack", 100, 61, 63, "", "returns", 100},
}

func TestTruth(t *testing.T) {
	for _, row := range truths {
		t.Run(row.name, func(t *testing.T) {
			c := newChecker(t)
			c.want, c.first, c.last = row.least, row.first, row.last
			frames, doubtful, later, met := 0, 0, 0, int64(0)
			missing := func() bool { return c.total < c.want || row.counter != "" && met == 0 }
			for runs := 0; runs == 0 || missing() && runs < maxRuns; runs++ {
				r := recordRaw(t, row.flags, on(t, row.runtime, "Truth", strings.Fields(row.program)...)...)
				r.well(t, 0, "TRUTH DONE\n")
				c.recorded(t, r)
				met += r.Counters[row.counter]
				for _, s := range r.samples {
					if readLater(s) { // a few of these have thousands of frames
						later++
						continue
					}
					for i := range s.Frames {
						if frames++; s.Frames[i].Trust.Doubtful() {
							doubtful++
						}
					}
				}
				for part := range strings.SplitSeq(row.says, "|") {
					expect.Contains(t, r.stderr, part)
				}
			}
			c.verdict(t)
			expect.Figures(t, doubtful*100 <= frames*row.doubtful && later*50 <= c.total &&
				(row.counter == "" || met != 0),
				"%d of %d frames are doubtful, callers of %d of %d samples were read later; %s: %d", doubtful, frames,
				later, c.total, row.counter, met)
		})
	}
}
