package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Max returns the larger number whether it compares with < or with <=.
const (
	source = `package a

func Max(a, b int) int {
	if a < b {
		a = b
	}
	return a
}

func name() string { return "a" }
`
	itsTest = `package a

import "testing"

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max(2, 1) != 2 {
		t.Fatal("wrong")
	}
}
`
)

const outcomes = `SURVIVED a/a.go:10: return early
  -func name() string { return "a" }
  +func name() string { return *new(string); return "a" }
SURVIVED a/a.go:4: swap <
  -	if a < b {
  +	if a <= b {
caught a/a.go:3: return early  a TestMax
  -func Max(a, b int) int {
  +func Max(a, b int) int { return *new(int);
caught a/a.go:4: negate a condition  a TestMax
  -	if a < b {
  +	if !(a < b) {
caught a/a.go:5: drop a statement  a TestMax
  -		a = b
  +
`

// All changes of a small package are tried, and the copy of the tree is the source again afterwards.
func TestMutants(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	root := filepath.Join(t.TempDir(), "a")
	must.Do(t, os.MkdirAll(filepath.Join(root, "a"), 0o700))
	for name, text := range map[string]string{"go.mod": "module a\n\ngo 1.24\n", "a/a.go": source,
		"a/a_test.go": itsTest} {
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	r := &runner{root: root, limit: map[string]time.Duration{}}
	r.ctx, r.stop = context.WithCancel(t.Context())
	defer r.close()
	must.Do(t, r.copies(1))
	all, check, err := changes(root, "a")
	must.Do(t, err)
	must.Do(t, r.baseline([]string{"./a"}))
	var got []string
	r.try(all, check, []string{"./a"}, len(all), 1, func(c *change, o outcome, by string) {
		got = append(got, string(o)+" "+c.line(by)+"\n"+c.diff())
	})
	slices.Sort(got)
	expect.Equal(t, strings.Join(got, ""), outcomes)
	tree := <-r.trees
	expect.Equal(t, string(must.Get(os.ReadFile(filepath.Join(tree, "a", "a.go")))(t)), source)
}

// A file that cannot be restored ends the run: its change would be in every later test too.
func TestSpoiled(t *testing.T) {
	tree := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(tree, "a.go"), 0o700))
	r := &runner{trees: make(chan string, 1)}
	r.ctx, r.stop = context.WithCancel(t.Context())
	r.trees <- tree
	o, by := r.apply(&change{file: "a.go"}, nil)
	expect.True(t, o == invalid && strings.Contains(by, "directory") && r.ctx.Err() != nil, "%s %s", o, by)
}

// Each operator finds its places in C, and none in comments and preprocessor lines.
func TestChangesOfC(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"\tif (a < b) {", "if (!(a < b)) { ~ if (a <= b) {"},
		{"\tx->n = 3;", "x->n = (3 + 1); ~ ;"},
		{"\t__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);", "__atomic_store_n(&r->commit, at | (1 + 1), __ATOMIC_RELEASE); ~ " +
			"__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELAXED); ~ ;"},
		{"\treturn a && b - c;", "return a && b + c; ~ return a || b - c;"},
		{"\tint n = size;", ""},
		{" * if (a < b)", ""}, {"#define A (b < 1)", ""}, {"// a = 1;", ""},
	} {
		var got []string
		for _, ch := range changesOfC("a.c", []byte("\n"+c.line+"\n")) {
			got = append(got, strings.TrimSpace(string(ch.mutant())))
		}
		expect.Equal(t, strings.Join(got, " ~ "), c.want, c.line)
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name, out, test string
		compiled        bool
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
		test, compiled := failure(c.out)
		expect.True(t, test == c.test && compiled == c.compiled, "%s: %q, %v", c.name, test, compiled)
	}
}
