package hang

import (
	"fmt"
	"strings"
)

// rest reports what the threads of the program wait for.
func (j *judge) rest() {
	var listed []uint32
	ran, incomplete, unowned, workers := 0, 0, 0, 0
	waits := map[Wait]int{}
	for i := range j.p.Threads {
		t := &j.p.Threads[i]
		w, _ := t.Wait()
		if worker, _ := t.worker(); t.Ran && worker && w == Idle {
			workers++
		}
		if t.Ran && w != Idle {
			ran++
		}
		if t.Incomplete {
			incomplete++
		}
		if w == Idle || w == NoWait && !t.Ran {
			continue
		}
		if (w == Enter || w == ReaderWriter) && !t.Ran && t.Lock.Owner == 0 {
			unowned++
		}
		waits[w]++
		listed = append(listed, t.TID)
	}
	chains, _ := j.chainLines(func(*Chain) bool { return true })
	lines := append(j.list(listed, j.doesNow), chains...)
	if workers > 0 {
		lines = append(lines, fmt.Sprintf("%s of the thread pool ran between the two snapshots, without work now",
			count(workers, "worker")))
	}
	if incomplete > 0 {
		lines = append(lines, fmt.Sprintf("%s incomplete: what these threads wait for may be missing",
			isAre(incomplete, "stack")))
	}
	kind, summary := Nothing, "No circle of locks was found."
	switch {
	case j.p.Once:
		summary += " A core is one snapshot: it cannot show whether threads run."
	case ran+workers > 0:
		ran += workers
		summary += fmt.Sprintf(" %s used CPU time between the two snapshots.", count(ran, "thread"))
	case len(waits) > 0:
		kind = Waiting
		summary = "No thread of the program used CPU time between the two snapshots. " + sumOf(waits) +
			" These waits end only if a timer or something outside the process ends them."
	default:
		summary += " No thread of the program used CPU time between the two snapshots: the process is idle."
	}
	if unowned > 0 {
		summary += fmt.Sprintf(" The owners of the locks of %s are not known: a circle of these locks is not found.",
			count(unowned, "thread"))
	}
	j.add(kind, false, nil, lines, "%s", summary)
}

// doesNow is does, for a thread that is not in a hang: if it ran between the snapshots, it runs.
func (j *judge) doesNow(t *Thread) string {
	if t.Ran {
		return "runs, in " + t.Place()
	}
	return j.does(t)
}

// sumOf returns a sentence with the number of threads for each kind of wait.
func sumOf(waits map[Wait]int) string {
	var parts []string
	for w := Enter; w <= Finalizers; w++ {
		if n := waits[w]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d for %s", n, w))
		}
	}
	return "Threads wait: " + strings.Join(parts, ", ") + "."
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// chainLines lists the chosen chains that wait most often, and counts all of them.
func (j *judge) chainLines(chosen func(*Chain) bool) (lines []string, all int) {
	const shown = 3
	kinds := 0
	for i := range j.p.Chains {
		if c := &j.p.Chains[i]; chosen(c) {
			if all += c.Count; kinds < shown {
				lines = append(lines, fmt.Sprintf("%s: %s", count(c.Count, "pending chain"), c))
			}
			kinds++
		}
	}
	if kinds > shown {
		lines = append(lines, fmt.Sprintf("%s in all; seedwalk tasks lists them",
			count(all, "pending chain")))
	}
	return lines, all
}
