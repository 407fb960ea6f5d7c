package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Every fault still fits the code: the words it replaces are there, once.
func TestFaultsApply(t *testing.T) {
	root := must.Get(moduleroot.Find())(t)
	seen, texts := map[string]bool{}, map[string]string{}
	for _, f := range Faults() {
		text, err := f.text(root)
		expect.Equal(t, err, nil)
		key := f.File + string(text)
		expect.True(t, err != nil || texts[key] == "", "fault %q is %q again", f.Name, texts[key])
		texts[key] = f.Name
		expect.True(t, !seen[f.Name] && f.What != "" && len(f.By) > 0 && f.Old != f.New,
			"fault %q: a part is missing, or the name is taken", f.Name)
		seen[f.Name] = true
	}
	const least = 150
	expect.True(t, len(seen) >= least, "%d faults, want at least %d", len(seen), least)
}

// The table has a row for each fault of a protocol, and none for a fault that is gone. Each row names a test
// that exists, or says why the fault survives.
func TestTable(t *testing.T) {
	root := must.Get(moduleroot.Find())(t)
	rows := must.Get(table(root))(t)
	for _, f := range protocolFaults() {
		expect.True(t, rows[f.Name] != "", "%s has no row in %s", f.Name, tableFile)
	}
	sources := map[string]string{}
	testsOf := func(pkg string) string {
		if sources[pkg] == "" {
			for _, path := range must.Get(filepath.Glob(filepath.Join(root, pkg, "*_test.go")))(t) {
				sources[pkg] += string(must.Get(os.ReadFile(path))(t))
			}
		}
		return sources[pkg]
	}
	for _, f := range Faults() {
		by := rows[f.Name]
		delete(rows, f.Name)
		if reason, ok := strings.CutPrefix(by, survives); ok {
			expect.True(t, len(reason) > 20, "no reason why %s survives: %q", f.Name, reason)
		} else if by != "" {
			pkg, name, _ := strings.Cut(by, " ")
			name, _, _ = strings.Cut(name, "/")
			name, _, _ = strings.Cut(name, " ")
			there := strings.Contains(testsOf(pkg), "func "+name+"(")
			expect.True(t, there, "%s: %s has no %q", f.Name, pkg, name)
		}
	}
	expect.Equal(t, len(rows), 0, "rows of no fault: %v", rows)
}

// One fault is really applied, and caught by a test; the tree is as it was.
func TestOneIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED-CHECK: it copies the tree and compiles a package's tests twice")
	}
	ok, err := check("x64-alloc-small", "./pe/amd64", 1, false)
	expect.True(t, err == nil && ok, "caught: %v, %v", ok, err)
}

// A file that cannot be restored ends the run: its fault would be in every later test too.
func TestSpoiled(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module a\n",
		"a.go":      "package a\n\nconst sound = true\n",
		"a_test.go": "package a\n\nimport (\n\"os\"\n\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tos.Remove(\"a.go\")\n\tos.Mkdir(\"a.go\", 0o700)\n\tt.Fail()\n}\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(tree, name), []byte(text), 0o600))
	}
	s := &Step{".", nil}
	r := &runner{trees: make(chan string, 1), limit: map[*Step]time.Duration{s: leastLimit}}
	r.ctx, r.stop = context.WithCancel(t.Context())
	r.trees <- tree
	f := &Fault{Name: "a", File: "a.go", Old: "true", New: "false", By: []*Step{s}}
	res := r.apply(f)
	expect.True(t, !res.Caught && strings.Contains(res.By, "directory"), "%+v", res)
	res = r.apply(f)
	expect.True(t, !res.Caught && res.By == "interrupted", "the next one: %+v", res)
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name, out, test string
		caught          bool
	}{
		{"a test", "--- FAIL: TestA (0.1s)\n    x_test.go:1: no\nFAIL\n", "TestA", true},
		{"its part", "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n        --- FAIL: TestA/b/c (0s)\n    --- FAIL: TestA/d (0s)\n--- FAIL: TestE (0s)\n", "TestA/b/c", true},
		{"a panic", "--- FAIL: TestA (0.1s)\npanic: index out of range [recovered]\n",
			"TestA (panic: index out of range [recovered])", true},
		{"a hang", "panic: test timed out after 20s\n\trunning tests:\n\t\tTestA (20s)\n",
			"TestA (it hangs)", true},
		{"no compilation of C", "--- FAIL: TestA (0.1s)\n    build.go:9: gcc -c a.c: exit status 1\n        /tmp/a.c:63:27: error: unused variable 'h' [-Werror]\n", "it does not compile: /tmp/a.c:63:27: error: unused variable 'h' [-Werror]", false},
		{"no link of C", "--- FAIL: TestA (0.1s)\n    ld: a.o: undefined reference to `f'\n",
			"it does not compile: ld: a.o: undefined reference to `f'", false},
		{"no compilation", "FAIL\tseedwalk/sim [build failed]\n",
			"it does not run:\nFAIL\tseedwalk/sim [build failed]\n", false},
	} {
		test, caught := failure(c.out)
		expect.True(t, test == c.test && caught == c.caught, "%s: %q, %v", c.name, test, caught)
	}
}
