//go:build linux && amd64

package native

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// leastNeeded is how many memory orders of a file some world needs. Each file of a world has a row. 0 means
// that no world finds a weaker order.
var leastNeeded = map[string]int{
	"capi/check_amd64.c":                   0,
	"capi/client/src/ids.c":                4,
	"capi/copies_amd64.c":                  4,
	"capi/sampler_amd64.c":                 3,
	"capi/examples/own_protocol_windows.c": 0,
	"profiler/host/capture_linux.c":        4,
	"profiler/host/events.c":               5,
	"profiler/host/threads.c":              13,
	"profiler/host/watchdog_windows.c":     0,
	"sample/probe/src/copy.c":              0,
	"sample/probe/src/dropped.c":           1,
	"sample/probe/src/events.c":            3,
	"sample/probe/src/handler.c":           12,
	"sample/probe/src/local.h":             1,
	"sample/probe/src/objects.c":           1,
	"sample/probe/src/read.c":              1,
	"sample/probe/src/relay.c":             1,
	"sample/probe/src/session.c":           2,
	"sample/probe/src/start.c":             1,
}

// weakLimit bounds the executions of a world with a weakened order. Two sound worlds have more.
const weakLimit = 40_000

var (
	included = regexp.MustCompile(`(?m)^#include "(\w+\.c|local\.h)"`)
	atomicOp = regexp.MustCompile(`__atomic_(\w+?)(_n)?\(|__ATOMIC_(RELEASE|ACQUIRE|ACQ_REL|SEQ_CST)\b`)
)

// weaker returns the next weaker order of an operation.
func weaker(op, order string) string {
	switch {
	case order != "SEQ_CST":
		return "RELAXED"
	case op == "load":
		return "ACQUIRE"
	case op == "store":
		return "RELEASE"
	}
	return "ACQ_REL"
}

// orders returns a fault for each memory order of a source, in its order of places.
func orders(t *testing.T, path string) (all []fault) {
	b := must.Get(os.ReadFile(path))(t)
	text, op := string(b), ""
	for _, m := range atomicOp.FindAllStringSubmatchIndex(text, -1) {
		if m[6] < 0 {
			op = text[m[2]:m[3]]
			continue
		}
		if op == "thread_fence" {
			continue // one step weaker it is none: a fault of its world
		}
		order := text[m[6]:m[7]]
		line := text[strings.LastIndexByte(text[:m[0]], '\n')+1:]
		line, _, _ = strings.Cut(line, "\n")
		all = append(all, fault{
			name: fmt.Sprintf("%s: %s: %s -> %s", filepath.Base(path),
				strings.TrimSpace(line), order, weaker(op, order)),
			file:  filepath.Base(path),
			edits: [][2]string{{fmt.Sprintf("@%d", m[6]), order + ">" + weaker(op, order)}},
		})
	}
	return all
}

// differs reports whether a world with a fault shows something that the product does not.
func (w *world) differs(r result) bool {
	return r.Failures > 0 || hasNew(r.Races, w.races) || hasNew(r.Outcomes, w.outcomes)
}

func hasNew(all, known []string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return !slices.Contains(known, s) })
}

// The table names the world that fails if a memory order is one step weaker, "-" for none: such an
// order is stronger than it must be, or lacks a world.
func TestOrders(t *testing.T) {
	users := map[string][]world{}
	for _, w := range worlds {
		b := must.Get(os.ReadFile(filepath.Join("worlds", w.file+".c")))(t)
		for _, m := range included.FindAllStringSubmatch(string(b), -1) {
			if path := filepath.Join(w.folder(), m[1]); !w.long {
				users[path] = append(users[path], w)
			}
		}
	}
	var paths []string
	for path := range users {
		_, ok := leastNeeded[path]
		expect.True(t, ok, "leastNeeded has no row for %s", path)
		paths = append(paths, path)
	}
	if !*long {
		t.Skip("SKIPPED-CHECK: memory orders are weakened with -explore only (make explore): about ten minutes")
	}
	slices.Sort(paths)
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path), func(t *testing.T) {
			all := orders(t, filepath.Join(needs.Root(t), path))
			var needed int
			var lines []string
			for _, f := range all {
				by := neededBy(t, users[path], f)
				if !strings.HasPrefix(by, "-") {
					needed++
				}
				lines = append(lines, fmt.Sprintf("%-110s %s", f.name, by))
			}
			t.Logf("%d of %d orders are needed by a world\n%s", needed, len(all), strings.Join(lines, "\n"))
			expect.True(t, needed >= leastNeeded[path],
				"%d orders are needed, there were %d", needed, leastNeeded[path])
		})
	}
}

// neededBy names the first world that fails with a weakened order. "-": none, in all executions or in as many
// as the limit permits.
func neededBy(t *testing.T, worlds []world, f fault) string {
	by := "-"
	for _, w := range worlds {
		w.limit = weakLimit
		r := explore(t, w, "weak", f)
		if w.differs(r) {
			return w.name
		}
		if !r.Whole {
			by = "- (not whole)"
		}
	}
	return by
}
