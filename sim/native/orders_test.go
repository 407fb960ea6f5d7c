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

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// leastNeeded is how many memory orders some world needs.
const leastNeeded = 27

var (
	included = regexp.MustCompile(`(?m)^#include "(\w+\.c)"`)
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
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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
			name:  fmt.Sprintf("%s: %s: %s -> %s", filepath.Base(path), strings.TrimSpace(line), order, weaker(op, order)),
			file:  filepath.Base(path),
			edits: [][2]string{{fmt.Sprintf("@%d", m[6]), order + ">" + weaker(op, order)}},
		})
	}
	return all
}

// differs reports whether a world with a fault shows something that the product does not.
func (w *world) differs(r result) bool {
	return r.Failures > 0 || !slices.Equal(r.Races, w.races) || !slices.Equal(r.Outcomes, w.outcomes)
}

// The table names the world that fails if a memory order is one step weaker, "-" for none: such an
// order is stronger than it must be, or lacks a world.
func TestOrders(t *testing.T) {
	if !*long {
		t.Skip("SKIPPED-CHECK: memory orders are weakened with -explore only (make explore): about five minutes")
	}
	users := map[string][]world{}
	for _, w := range worlds {
		b, err := os.ReadFile(filepath.Join("worlds", w.file+".c"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range included.FindAllStringSubmatch(string(b), -1) {
			if path := filepath.Join(w.folder(), m[1]); !w.long {
				users[path] = append(users[path], w)
			}
		}
	}
	var paths, lines []string
	for path := range users {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	needed, all := 0, 0
	for _, path := range paths {
		for _, f := range orders(t, filepath.Join(needs.Root(t), path)) {
			all++
			by := "-"
			for _, w := range users[path] {
				if r := explore(t, w, "weak", f); w.differs(r) {
					by = w.name
					needed++
					break
				}
			}
			lines = append(lines, fmt.Sprintf("%-110s %s", f.name, by))
		}
	}
	t.Logf("%d of %d orders are needed by a world\n%s", needed, all, strings.Join(lines, "\n"))
	if needed < leastNeeded {
		t.Errorf("%d orders are needed, there were %d", needed, leastNeeded)
	}
}
