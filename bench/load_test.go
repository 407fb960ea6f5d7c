package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// BenchmarkSeed is a whole seed search, judged, over the leaf blocks, beside the walk alone.
func BenchmarkSeed(b *testing.B) {
	for k, path := range rawFiles(b) {
		f, _, err := peer.FromRaw(path, 1500)
		must.Do(b, err)
		s := newSide(f)
		frames, walks := 0, 0
		var none *managed.Specials
		find := func(i int) int {
			w := &f.Stacks[i]
			return seed.Find(none, s.us[w.Set], s.begin(w), s.mems[i], nil, s.out[:], &s.by).Frames
		}
		walk := func(i int) int {
			w := &f.Stacks[i]
			return s.us[w.Set].Walk(s.begin(w), s.mems[i], nil, s.out[:]).N
		}
		b.Run(filepath.Base(path), func(b *testing.B) {
			r := against(fmt.Sprintf("dotnet-%d/seed", k), "walk",
				wholeFrames(s, walk), s.each(find), s.each(walk))
			b.ReportAllocs()
			frames, walks = 0, 0
			for b.Loop() {
				for i := range f.Stacks {
					frames += find(i)
					walks++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(walks), "ns/seed")
			r.report(b)
		})
	}
}

// each is a round of work on every stack.
func (s *side) each(work func(i int) (frames int)) round {
	return func(n int) float64 {
		frames, begin := 0, time.Now()
		for range n {
			for i := range s.file.Stacks {
				frames += work(i)
			}
		}
		return float64(time.Since(begin)) / float64(frames)
	}
}

// wholeFrames is how many frames walks to their end have.
func wholeFrames(s *side, walk func(i int) int) (n int) {
	for i := range s.file.Stacks {
		n += walk(i)
	}
	return n
}

// BenchmarkLoad opens a module and indexes its unwind data. What the file is,
// its name says: *.dll has PE unwind data.
func BenchmarkLoad(b *testing.B) {
	for _, path := range images(b) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.ReportAllocs()
			entries := 0
			for b.Loop() {
				entries = load(b, path)
			}
			b.ReportMetric(float64(entries), "entries")
			loads[filepath.Base(path)] = float64(b.Elapsed().Microseconds()) / 1000 / float64(b.N)
			loadAllocations[filepath.Base(path)] = testing.AllocsPerRun(1, func() { load(b, path) })
		})
	}
}

const (
	twentyModules = "20 modules"
	firstRounds   = 50 // of mappings that stay: the system has room for 65,530
)

// BenchmarkFirst maps the modules of a .NET process, opens them, and finds the rules of
// one function of each: all that stands before a first frame. The fastest round counts.
func BenchmarkFirst(b *testing.B) {
	var paths []string
	for _, pattern := range []string{filepath.Join(filepath.Dir(coreclrSO), "*.so"),
		"/lib/x86_64-linux-gnu/lib[cm].so.6", "/lib/x86_64-linux-gnu/ld-linux-*.so.2",
		"/lib/x86_64-linux-gnu/libgcc_s.so.1", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	if len(paths) < 20 {
		b.Skipf("SKIPPED-CHECK: only %d modules", len(paths))
	}
	paths = paths[:20]
	pcs := make([]uint64, len(paths))
	for i, path := range paths {
		m := module.LoadELF(0, path, 0, 1<<40, 0)
		if m.CFI == nil {
			b.Fatal(path, m.Err)
		}
		m.CFI.Each(func(f cfi.FDE) bool { pcs[i] = f.Lo; return false })
	}
	best := time.Hour
	for range firstRounds {
		at := time.Now()
		first(b, paths, pcs)
		best = min(best, time.Since(at))
	}
	b.ReportMetric(float64(best.Microseconds())/1000, "ms/20-modules")
	loads[twentyModules] = float64(best.Microseconds()) / 1000
}

func first(b *testing.B, paths []string, pcs []uint64) {
	var machine cfi.Machine
	var row cfi.Row
	for i, path := range paths {
		f := must.Get(elf.Map(path))(b)
		m := module.OpenELF(uint32(i), f, path, 0, 1<<40, 0)
		if m.CFI == nil || machine.Row(m.CFI, pcs[i], &row) != cfi.None {
			b.Fatal(path, m.Err)
		}
	}
}

// load loads a module and gives its number of FDEs or functions.
func load(b *testing.B, path string) int {
	if filepath.Ext(path) == ".dll" {
		m := module.LoadPE(0, path, 1<<33, 0)
		if m.PE == nil {
			b.Fatal(m.Err)
		}
		return m.PE.AMD64().Len()
	}
	m := module.LoadELF(0, path, 0, 1<<40, 0)
	if m.Err != nil {
		b.Fatal(m.Err)
	}
	return m.CFI.Len()
}

// images finds the C library, libcoreclr, and Windows' coreclr.
func images(b *testing.B) (paths []string) {
	for _, pattern := range []string{
		"/lib/*-linux-gnu/libc.so.6", coreclrSO, coreclrDLL,
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			b.Logf("SKIPPED-CHECK: no %s", pattern)
			continue
		}
		paths = append(paths, found[0])
	}
	return paths
}

// A round (or a try at one) times n repetitions of the same work and gives ns per frame.
type round func(n int) float64

// Rounds of each side. The best of some tries counts for a round: a try is
// short, so that most pass undisturbed on a machine that others use too.
const (
	rounds  = 15
	tries   = 8
	tryTime = 400 * time.Microsecond
)

// best is a side's round.
func best(try round, n int) float64 {
	ns := try(n)
	for range tries - 1 {
		ns = min(ns, try(n))
	}
	return ns
}

// result is how two sides compare. A ratio is the other side's time by ours:
// above 1 we are faster.
type result struct {
	name, peer   string
	frames       int
	ours, theirs float64   // ns per frame, the minimum of the rounds
	ratios       []float64 // of neighbouring rounds, sorted; nil = there is no peer
}

// against alternates rounds of both sides.
func against(name, peer string, frames int, ours, theirs round) result {
	times := func(perFrame float64) int { return max(1, int(float64(tryTime)/perFrame/float64(frames))) }
	nOurs, nTheirs := times(best(ours, 2)), times(best(theirs, 2))
	r := result{name: name, peer: peer, frames: frames}
	var o, p []float64
	for range rounds {
		o, p = append(o, best(ours, nOurs)), append(p, best(theirs, nTheirs))
		r.ratios = append(r.ratios, p[len(p)-1]/o[len(o)-1])
	}
	r.ours, r.theirs = slices.Min(o), slices.Min(p)
	slices.Sort(r.ratios)
	return r
}

// report gives a result's numbers to the benchmark and to the table.
func (r result) report(b *testing.B) {
	b.ReportMetric(r.ours, "ours-ns/frame")
	b.ReportMetric(r.theirs, r.peer+"-ns/frame")
	b.ReportMetric(r.ratios[0], "ratio-min")
	b.ReportMetric(r.ratios[rounds/2], "ratio-median")
	b.ReportMetric(r.ratios[rounds-1], "ratio-max")
	table = append(table, r)
}

// table holds the results of this run. Benchmarks run one after another.
var table []result

// TestMain prints the table below the benchmarks, and what it says of the goals.
func TestMain(m *testing.M) {
	code := m.Run()
	if len(table) > 0 {
		fmt.Printf("\n%-22s %7s %10s  %-22s %10s   %s\n", "walk", "frames", "ours", "beside", "ns/frame",
			"times faster: median (min ... max)")
	}
	for _, r := range table {
		fmt.Printf("%-22s %7d %10.1f  %-22s %10.1f   %.2f (%.2f ... %.2f)\n", r.name,
			r.frames, r.ours, r.peer, r.theirs,
			r.ratios[rounds/2], r.ratios[0], r.ratios[rounds-1])
	}
	if len(table)+len(loads)+len(tails) > 0 {
		printGoals(os.Stdout)
	}
	os.Exit(code)
}

// ours is our side's round.
func (s *side) ours(m peer.Mode) round {
	return func(n int) float64 {
		ns, frames := s.round(m, n)
		return float64(ns) / float64(frames)
	}
}

// again repeats our side for the testing package's own figures.
func (s *side) again(b *testing.B, m peer.Mode) {
	b.ReportAllocs()
	for b.Loop() {
		s.round(m, 1)
	}
}
