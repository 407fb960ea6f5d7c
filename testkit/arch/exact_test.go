package arch

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var update = flag.Bool("update", false, "write edges.txt again: look at the change")

const edgesFile = "edges.txt"

// used returns the project's packages that each package imports outside of tests.
func used(all []Package) map[string][]string {
	out := map[string][]string{}
	for i := range all {
		to := map[string]bool{}
		for _, e := range all[i].Edges {
			if e.Ours && !e.Test {
				to[e.To] = true
			}
		}
		if len(to) > 0 {
			out[all[i].Name] = slices.Sorted(maps.Keys(to))
		}
	}
	return out
}

// exactly compares the imports with the listed ones: both an import that is not listed and a listed one that
// is not used break the rule.
func exactly(all []Package, listed map[string][]string) (out []Violation) {
	now := used(all)
	for _, from := range slices.Sorted(maps.Keys(now)) {
		for _, to := range now[from] {
			if !slices.Contains(listed[from], to) {
				out = append(out, Violation{"exact",
					fmt.Sprintf("%s imports %s, which is not in %s", from, to, edgesFile)})
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(listed)) {
		for _, to := range listed[from] {
			if !slices.Contains(now[from], to) {
				out = append(out, Violation{"exact",
					fmt.Sprintf("%s does not import %s any more: delete the edge from %s", from, to,
						edgesFile)})
			}
		}
	}
	return out
}

// readEdges reads lines "package: import import ...".
func readEdges(t *testing.T) map[string][]string {
	t.Helper()
	b := must.Get(os.ReadFile(edgesFile))(t)
	out := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(line, "#") {
			out[from] = strings.Fields(to)
		}
	}
	return out
}

func writeEdges(t *testing.T, edges map[string][]string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# What each package imports of the project outside of tests. Write it again with\n# go test ./testkit/arch -update, and look at the change: each new edge ties two packages.\n")
	for _, from := range slices.Sorted(maps.Keys(edges)) {
		fmt.Fprintf(&b, "%s: %s\n", from, strings.Join(edges[from], " "))
	}
	must.Do(t, os.WriteFile(edgesFile, b.Bytes(), 0o644))
}

// The listed edges are exactly the used ones: none is added unnoticed, and none stays allowed that is not
// needed.
func TestExactEdges(t *testing.T) {
	_, all := load(t)
	if *update {
		writeEdges(t, used(all))
	}
	n := 0
	for _, to := range used(all) {
		n += len(to)
	}
	t.Logf("%d edges between %d packages", n, len(used(all)))
	for _, v := range exactly(all, readEdges(t)) {
		t.Error(v)
	}
}

// An edge that is not listed is found, even if it goes down; so is a listed one that is not used.
func TestSidewaysEdges(t *testing.T) {
	_, all := load(t)
	listed := readEdges(t)
	for _, edge := range [][2]string{
		{"stack/merge", "unwind/amd64"}, {"sample/probe", "sample/agent"}, {"stack/seed", "unwind/arm64"},
		{"cmd/record", "stack/merge"}, {"cmd/record", "symbol"}, {"report/export", "context/memory"},
		{"eventpipe/waits", "report/wire"}, {"sample/outside", "process/dump"}, {"stack/snapshot", "pe"},
		{"report/inspect", "cfi"}, {"report/diff", "report/wire"}, {"capi", "process/dump"},
	} {
		if slices.Contains(listed[edge[0]], edge[1]) {
			continue // it is needed by now
		}
		changed := slices.Clone(all)
		i := slices.IndexFunc(changed, func(p Package) bool { return p.Name == edge[0] })
		changed[i].Edges = append(slices.Clone(changed[i].Edges),
			Edge{To: edge[1], Ours: true, File: edge[0] + "/x.go"})
		if got := exactly(changed, listed); len(got) != 1 {
			t.Errorf("%s imports %s: found %v", edge[0], edge[1], got)
		}
	}
	more := maps.Clone(listed)
	more["stack/seed"] = append(slices.Clone(more["stack/seed"]), "unwind/module/other")
	got := exactly(all, more)
	expect.True(t, len(got) == 1, "an edge that is not used: found %v", got)
}
