package e2e

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

var asyncSeconds = flag.Int("async-seconds", 3,
	"CPU time that the program of TestAsyncCallers uses on each runtime")

// asyncTruth is what the program Requests prints: the async methods of each number, and the number of the
// path of each Activity.
type asyncTruth struct {
	chains map[int]string
	paths  map[string]int
}

func readAsyncTruth(stdout string) asyncTruth {
	t := asyncTruth{map[int]string{}, map[string]int{}}
	for line := range strings.Lines(stdout) {
		text, number, _ := cutLast(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		switch {
		case err != nil:
		case strings.HasPrefix(text, "App."):
			t.chains[n] = text
		case strings.HasPrefix(text, "00-"):
			t.paths[text[3:len(text)-3]] = n
		}
	}
	return t
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// asyncNumber is the number that the program has put on a stack, false if none.
func asyncNumber(names []string) (n int, ok bool) {
	digits := ""
	for _, name := range names {
		if d, ok := strings.CutPrefix(name, "Digits.N"); ok && len(d) == 1 {
			digits += d
		}
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && len(digits) == 3
}

// asyncLogical is the chain of awaiting methods on a stack: the bodies up to the one that the runtime has
// resumed, and the async callers. shown is false if the stack has no async callers.
func asyncLogical(names, classes []string) (chain string, shown bool) {
	var all []string
	for i, name := range names {
		if body, ok := strings.CutSuffix(name, " (async)"); ok {
			all = append(all, body)
		} else if len(all) > 0 &&
			(strings.HasPrefix(name, "System.Threading.") || strings.Contains(name, "StateMachineBox")) ||
			classes[i] == "async" {
			break
		}
	}
	for i, name := range names {
		if classes[i] == "async" {
			all, shown = append(all, name), true
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, "App.") })
	return strings.Join(all, " <- "), shown
}

// async is the names and the classes of a stack's frames.
func (p *jsonProfile) async(stack int) (names, classes []string) {
	for _, f := range p.Stacks[stack].Frames {
		names, classes = append(names, p.Frames[f].Name), append(classes, p.Frames[f].Class)
	}
	return names, classes
}

// asyncJudged counts samples by result. Those that are early have a part of their callers: one is not at
// its await yet, on another thread.
type asyncJudged struct{ right, early, wrong, missing int64 }

func (j *asyncJudged) String() string {
	return fmt.Sprintf("%d right, %d early, %d wrong, %d without callers",
		j.right, j.early, j.wrong, j.missing)
}

func judgeAsync(t *testing.T, p *jsonProfile, truth asyncTruth) (j asyncJudged) {
	for i := range p.Stacks {
		s := &p.Stacks[i]
		names, classes := p.async(i)
		n, ok := asyncNumber(names)
		if !ok || s.Event != "" {
			continue
		}
		chain, shown := asyncLogical(names, classes)
		switch {
		case chain == truth.chains[n]:
			j.right += s.Count
		case shown && strings.HasPrefix(truth.chains[n], chain+" <- "):
			j.early += s.Count
		case shown:
			if j.wrong += s.Count; j.wrong < 5 {
				t.Logf("%s\nwant %s\nin   %s", chain, truth.chains[n], strings.Join(names, " | "))
			}
		default:
			j.missing += s.Count
		}
	}
	return j
}

// The async callers of samples are the program's, whoever resumes it: a timer, the thread pool, or the end of
// an awaited operation. All the while a thread allocates and collects.
func TestAsyncCallers(t *testing.T) {
	need(t, "out", "samples", "csc", "Csc.exe")
	eachRuntime(t, func(t *testing.T, runtime string) {
		r := record(t, "--async --rate 999 --quiet",
			on(t, runtime, "Requests", "4", fmt.Sprint(*asyncSeconds))...)
		j, late := judgeAsync(t, r.jsonProfile, readAsyncTruth(r.stdout)), lateAsync(t, r)
		// Of at least 500, at most 1 % are early, 0.1 % and two are wrong, and 10 % lack callers without
		// being late. Half are right.
		all := j.right + j.early + j.wrong + j.missing
		expect.Figures(t, all >= 500 && 100*j.early <= all && 1000*j.wrong <= all+2000 &&
			10*(j.missing-late) <= all && 2*j.right >= all, "%v", &j)
	})
}

// lateAsync counts the samples whose objects were not read in time: those in the kernel, and the first ones,
// until the heap is known. Their number depends on the load of the machine. It includes samples of other
// threads than those that are judged.
func lateAsync(t *testing.T, r *recording) int64 {
	for name, n := range r.Counters {
		if strings.HasPrefix(name, "async_") && n > 0 {
			t.Logf("%s %d", name, n)
		}
	}
	return int64(r.Counters["async_late"])
}

// The ids of samples are those of the Activity that the program began for the request.
func TestAsyncActivities(t *testing.T) {
	need(t, "out", "samples", "csc", "Csc.exe")
	eachRuntime(t, func(t *testing.T, runtime string) {
		r := record(t, "--async --rate 999 --quiet",
			on(t, runtime, "Requests", "4", fmt.Sprint(*asyncSeconds), "activities")...)
		paths := readAsyncTruth(r.stdout).paths
		var right, wrong, all int64
		for i := range r.Stacks {
			if names, _ := r.async(i); r.Stacks[i].Event == "" {
				if _, ok := asyncNumber(names); ok {
					all += r.Stacks[i].Count
				}
			}
		}
		for _, a := range r.Activities {
			path, known := paths[a.Trace+"-"+a.Span]
			for _, s := range a.Stacks {
				names, _ := r.async(int(s[0]))
				switch n, ok := asyncNumber(names); {
				case !ok && known:
				case known && n/asyncLevels == path:
					right += s[1]
				default:
					if wrong += s[1]; wrong < 5 {
						t.Logf("%s-%s: path %d (%v)\nin %s", a.Trace, a.Span, path,
							known, strings.Join(names, " | "))
					}
				}
			}
		}
		// Of at least 500, at most 0.1 % and two are wrong, 90 % of those in time have ids, and half of all.
		expect.Figures(t, all >= 500 && wrong <= 2+all/1000 && 10*right >= 9*(all-lateAsync(t, r)) &&
			2*right >= all, "%d right, %d wrong, %d without ids", right, wrong, all-right-wrong)
	})
}

// asyncLevels is App.Levels of the program.
const asyncLevels = 8
