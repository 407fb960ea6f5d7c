package arch

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Limits of the whole tree.
const (
	maxFolders = 22   // top-level folders
	maxFloors  = 9    // top-level folders on one chain of imports
	maxFiles   = 15   // Go files of a package, tests aside
	maxLines   = 3000 // of those files
	sameLines  = 8    // lines of a run that make figures counts if it is in two places
)

// larger lists packages above the limits, with their permitted size and the reason. The sizes only shrink.
var larger = map[string]struct {
	files, lines int
	why          string
}{
	"unwind/amd64": {27, 4497,
		"one file a rule; the hot path stays in one package; epilogs, thunks, and unlisted pushes of three compilers; blocked threads; rules for managed code"},
	"unwind/arm64": {23, 3500,
		"the twin of unwind/amd64, thunks for calls, and unwind codes that omit a signing"},
	"sim/image": {22, 3450, "one file an encoder"},
	"report/export": {25, 4352,
		"one file a format, and lanes, findings, Activities, and paths of both systems, which several formats show"},
	"clr/contract":   {18, 0, "one file a structure of the runtime"},
	"report/inspect": {17, 0, "one file a format and architecture"},
	"process/live":   {17, 0, "pairs of files for two systems"},
}

// top is the top-level folder of a package.
func top(name string) string { return strings.SplitN(name, "/", 2)[0] }

// floors is the length of the longest chain of imports of each top-level folder. If there is a cycle, it
// returns its folders instead.
func floors(edges map[string][]string) (map[string]int, []string) {
	below := map[string]map[string]bool{}
	for from, list := range edges {
		for _, name := range append([]string{from}, list...) {
			if below[top(name)] == nil {
				below[top(name)] = map[string]bool{}
			}
			if top(name) != top(from) {
				below[top(from)][top(name)] = true
			}
		}
	}
	floor := map[string]int{}
	for len(floor) < len(below) {
		done := len(floor)
		for name, under := range below {
			high := 1
			for u := range under {
				if floor[u] == 0 {
					high = 0
					break
				}
				high = max(high, floor[u]+1)
			}
			if high > 0 {
				floor[name] = high
			}
		}
		if len(floor) == done {
			maps.DeleteFunc(below, func(name string, _ map[string]bool) bool { return floor[name] > 0 })
			return floor, slices.Sorted(maps.Keys(below))
		}
	}
	return floor, nil
}

// There are few top-level folders, and imports between them form at most nine floors without a cycle.
func TestFloors(t *testing.T) {
	floor, cycle := floors(readEdges(t))
	must.True(t, cycle == nil, "imports run in a cycle among the folders %v", cycle)
	byFloor := map[int][]string{}
	for name, f := range floor {
		byFloor[f] = append(byFloor[f], name)
	}
	for f := len(byFloor); f > 0; f-- {
		t.Logf("floor %d: %v", f, slices.Sorted(slices.Values(byFloor[f])))
	}
	t.Log("no import runs back up: there is no cycle")
	expect.True(t, len(byFloor) <= maxFloors, "%d floors, at most %d are right", len(byFloor), maxFloors)
	_, cycle = floors(map[string][]string{"a/x": {"b"}, "b": {"c"}, "c": {"a/y"}})
	expect.True(t, len(cycle) == 3, "a cycle of three is not found: %v", cycle)
}

// tracked lists the files of the repository, and new ones that are not in a commit yet.
func tracked(t *testing.T) []string {
	t.Helper()
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard").Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no git tree here, so its folders are not counted")
	}
	return strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
}

// kind is what a file counts as in the figures.
func kind(file string) string {
	switch ext := path.Ext(file); {
	case strings.HasSuffix(file, "_test.go"):
		return "Go tests"
	case ext == ".go":
		return "Go"
	case ext == ".c", ext == ".h", ext == ".cpp":
		return "C"
	}
	return "other"
}

// repeated counts the runs of run lines that are also at an earlier place. Lines without a letter do not
// count, nor do imports.
func repeated(texts [][]byte, run int) (n int) {
	seen := map[string]bool{}
	for _, b := range texts {
		var lines []string
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			if strings.ContainsAny(line, "abcdefghijklmnopqrstuvwxyz") && line[0] != '"' &&
				!strings.HasPrefix(line, "//") {
				lines = append(lines, line)
			}
		}
		for i := 0; i+run <= len(lines); i++ {
			key := strings.Join(lines[i:i+run], "\n")
			if seen[key] {
				n++
			}
			seen[key] = true
		}
	}
	return n
}

// Folders and packages stay within the limits, or are listed with a reason.
func TestSizes(t *testing.T) {
	folders, files, lines := map[string]bool{}, map[string]int{}, map[string]int{}
	kinds, texts := map[string]int{}, map[string][][]byte{}
	for _, f := range tracked(t) {
		b, err := os.ReadFile("../../" + f)
		if err != nil {
			continue // deleted, and not yet in a commit
		}
		length := bytes.Count(b, []byte("\n"))
		kinds[kind(f)] += length
		texts[kind(f)] = append(texts[kind(f)], b)
		if i := strings.IndexByte(f, '/'); i > 0 && f[0] != '.' {
			folders[f[:i]] = true
		}
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") ||
			strings.Contains(f, "testdata/") {
			continue
		}
		files[path.Dir(f)]++
		lines[path.Dir(f)] += length
	}
	largest := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return lines[b] - lines[a] })[:6]
	for i, name := range largest {
		largest[i] = fmt.Sprintf("%s %d", name, lines[name])
	}
	t.Logf("largest packages: %s", strings.Join(largest, ", "))
	t.Logf("lines by kind: %v", kinds)
	for _, k := range []string{"Go", "Go tests", "C"} {
		t.Logf("%s: %d runs of %d lines that an earlier place has too", k, repeated(texts[k], sameLines), sameLines)
	}
	twice := [][]byte{[]byte("a\nb\n{\n"), []byte("c\na\n\nb\n")}
	expect.Equal(t, repeated(twice, 2), 1, "runs of two lines")
	if t.Logf("%d top-level folders, %d packages", len(folders), len(files)); len(folders) > maxFolders {
		t.Errorf("%d top-level folders, at most %d are right: %v", len(folders), maxFolders,
			slices.Sorted(maps.Keys(folders)))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		allowed := larger[name]
		f, l := files[name], lines[name]
		mostFiles, mostLines := max(maxFiles, allowed.files), max(maxLines, allowed.lines)
		expect.True(t, f <= mostFiles && l <= mostLines,
			"%s has %d files and %d lines, at most %d and %d are right: move a job of it into a package of its own",
			name, f, l, mostFiles, mostLines)
	}
	for name, l := range larger {
		if l.why == "" || files[name] <= maxFiles && lines[name] <= maxLines {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}
