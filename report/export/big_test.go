package export

import (
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// large is a made-up profile of about the given number of stacks, always the
// same for the same arguments.
func large(stacks, depth int) *Profile {
	r := rand.New(rand.NewPCG(1, uint64(stacks)))
	p := &Profile{Command: []string{"dotnet", "large.dll"}, Runtime: ".NET 9.0.5",
		Duration: time.Minute, RateHz: 99,
		Start: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	names := []string{"System.Threading.Tasks.Task.ExecuteWithThreadLocal(ref Task, Thread)",
		"Shop.Orders.OrderService+<LoadAsync>d__12.MoveNext()",
		"System.Collections.Generic.Dictionary<System.__Canon, int>.FindValue(System.__Canon)",
		"WKS::gc_heap::plan_phase(int)", "pthread_cond_wait"}
	for i := range 1000 {
		c := Class([]uint8{0, 0, 0, 1, 2, 2, 3}[r.IntN(7)])
		p.Frames = append(p.Frames,
			Frame{Name: fmt.Sprintf("%s#%d", names[r.IntN(len(names))], i),
				Module:      fmt.Sprintf("m%d.dll", i%20),
				ModuleIndex: -1, Class: c, Doubtful: r.IntN(40) == 0})
	}
	p.Frames = append(p.Frames, Frame{Name: "unreadable", ModuleIndex: -1, Class: ClassGap})
	for i := range 12 {
		p.Threads = append(p.Threads, Thread{1000 + i, fmt.Sprintf(".NET TP Worker %d", i)})
	}
	for range stacks {
		n := 4 + r.IntN(depth)
		fs := make([]int32, n)
		for j := range fs { // near the root few choices, near the leaf many
			level := n - 1 - j
			fs[j] = int32((level*7 + int(r.ExpFloat64()*float64(1+level)/6)) % 1000)
		}
		s := Stack{Thread: r.IntN(12), Frames: fs, Count: int64(1 + r.ExpFloat64()*10), Complete: true}
		if r.IntN(50) == 0 {
			fs[r.IntN(n)], s.Complete, s.Gap = 1000, false, "unreadable"
		}
		s.WallNanos, s.CPUNanos = s.Count*10_000_000, s.Count*int64(r.IntN(10_000_000))
		p.Stacks = append(p.Stacks, s)
		p.Stats.Samples += s.Count
		if s.Complete {
			p.Stats.Complete += s.Count
		}
	}
	return p
}

// The page of 200,000 distinct stacks is written with at most 500 MB beside the profile, and opens
// in a browser.
func TestBigPage(t *testing.T) {
	p := large(200_000, 60)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	must.Do(t, WriteHTML(io.Discard, p))
	runtime.ReadMemStats(&after)
	t.Logf("%d MB allocated in %v", (after.TotalAlloc-before.TotalAlloc)>>20,
		time.Since(begin).Round(time.Millisecond))
	all := after.TotalAlloc - before.TotalAlloc
	expect.True(t, all <= 500e6, "%d bytes allocated", all)
	b := browser.Find(t, "a page of 200,000 stacks was not opened")
	const script = `<script>{ const out = document.createElement('pre'); out.className = 'answer'; out.textContent = [base.n > 4e6, tree.n === base.n, tree.count[0], Math.round(performance.now())].join(' '); document.body.append(out); }</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>", script, 1)), "")
	_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
	got, _, _ := strings.Cut(dom, "</pre>")
	expect.True(t, strings.HasPrefix(got, fmt.Sprintf("true true %d ", p.Stats.Samples)) &&
		!strings.Contains(log, "CONSOLE"), "%s\n%s", html.UnescapeString(got), log)
	t.Logf("nodes, tree, samples, milliseconds: %s", got)
}
