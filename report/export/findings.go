package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export/category"
)

// Limits from which something is a finding.
const (
	convoyThreads = 3    // waited at one time for locks of one place
	convoyShare   = 0.05 // share of the recording's time
	spinShare     = 0.05 // of the CPU time
	queueLong     = 500 * time.Millisecond
)

// findings name what slows a program down and shows in no single stack, one line each: a starved
// thread pool, a lock convoy, and spinning. They are in the summary and on the page.
func (p *Profile) findings() (out []string) {
	for _, line := range []string{p.starvation(), p.convoy(), p.spinLine()} {
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// starvation describes a thread pool whose work waits for a thread, if there is one.
func (p *Profile) starvation() string {
	starved, longest := int64(0), Wait{Stack: -1}
	var first time.Time
	for _, w := range p.Waits {
		switch p.Stacks[w.Stack].Event {
		case EventStarved:
			if starved++; first.IsZero() {
				first = w.Start
			}
		case EventQueue:
			if w.Nanos > longest.Nanos {
				longest = w
			}
		}
	}
	var parts []string
	if longest.Stack >= 0 && (starved > 0 || time.Duration(longest.Nanos) >= queueLong) {
		s := &p.Stacks[longest.Stack]
		parts = append(parts, fmt.Sprintf("a work item waited %s for a thread, queued by %s",
			shortTime(time.Duration(longest.Nanos)),
			cmp.Or(p.waitSite(s), threadLabel(&p.Threads[s.Thread]))))
	}
	if starved > 0 {
		parts = append(parts, fmt.Sprintf("all threads were blocked or busy, so the runtime added one %s, first after %s", plural(starved, "time"), shortTime(first.Sub(p.Start))))
	}
	if parts == nil {
		return ""
	}
	return "thread pool starvation: " + strings.Join(parts, "; ")
}

// convoy returns a line about the place in the program where threads queued for a lock: at least
// convoyThreads threads waited there at the same time. If there are several such places, it chooses the
// one where that lasted longest. It returns "" if it lasted less than convoyShare of the recording.
func (p *Profile) convoy() string {
	bySite := map[string][]Wait{}
	for _, w := range p.Waits {
		if s := &p.Stacks[w.Stack]; s.Event == EventLock {
			site := p.processOf(s) + "\x00" + p.waitSite(s) // processes share no lock
			bySite[site] = append(bySite[site], w)
		}
	}
	site, most, longest := "", 0, time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(bySite)) {
		if at, crowded := crowd(bySite[name]); crowded > longest {
			site, most, longest = name, at, crowded
		}
	}
	if p.Duration <= 0 || longest.Seconds() < convoyShare*p.Duration.Seconds() {
		return ""
	}
	_, site, _ = strings.Cut(site, "\x00")
	return fmt.Sprintf("lock convoy in %s: for %s at least %d threads waited for its lock at one time, up to %d", site, shortTime(longest), convoyThreads, most)
}

// processOf returns the name of a stack's process, from its root frame. It returns "" if the profile has one
// process only: its stacks have no such frame.
func (p *Profile) processOf(s *Stack) string {
	if root := frameAt(p, s, len(s.Frames)-1); root != nil && root.ModuleIndex < 0 && root.Addr == 0 &&
		root.Class == ClassNative && strings.HasPrefix(root.Name, "process ") {
		return root.Name
	}
	return ""
}

// crowd returns how many of the waits overlapped at most, and how long at least convoyThreads did.
func crowd(all []Wait) (most int, crowded time.Duration) {
	type edge struct {
		at   time.Time
		step int
	}
	edges := make([]edge, 0, 2*len(all))
	for _, w := range all {
		edges = append(edges, edge{w.Start, 1}, edge{w.Start.Add(time.Duration(w.Nanos)), -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at),
			cmp.Compare(a.step, b.step))
	})
	n := 0
	for i, e := range edges {
		if n >= convoyThreads {
			crowded += e.at.Sub(edges[i-1].at)
		}
		n += e.step
		most = max(most, n)
	}
	return most, crowded
}

// spinLine describes CPU time of threads that wait without being blocked, "" if it is a small part.
func (p *Profile) spinLine() string {
	var all, spun int64
	sites := map[string]int64{}
	categories := p.stackCategories()
	for i := range p.Stacks {
		s := &p.Stacks[i]
		all += s.CPUNanos
		if categories[i] == category.Spinning && s.CPUNanos > 0 {
			spun += s.CPUNanos
			sites[p.waitSite(s)] += s.CPUNanos
		}
	}
	if spun == 0 || float64(spun) < spinShare*float64(all) {
		return ""
	}
	site := slices.MaxFunc(slices.Sorted(maps.Keys(sites)),
		func(a, b string) int { return cmp.Compare(sites[a], sites[b]) })
	return fmt.Sprintf("spinning: %s of the CPU time waits without being blocked, most in %s",
		percent(spun, all), site)
}
