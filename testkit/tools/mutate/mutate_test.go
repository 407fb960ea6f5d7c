package main

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Every fault still fits the code: the words it replaces are there, once.
func TestFaultsApply(t *testing.T) {
	root := must.Get(moduleroot.Find())(t)
	seen := map[string]bool{}
	for _, f := range Faults() {
		if _, err := f.text(root); err != nil {
			t.Error(err)
		}
		if seen[f.Name] || f.What == "" || len(f.By) == 0 || f.Old == f.New {
			t.Errorf("fault %q: a part is missing, or the name is taken", f.Name)
		}
		seen[f.Name] = true
	}
	const least = 150
	if len(seen) < least {
		t.Errorf("%d faults, want at least %d", len(seen), least)
	}
}

// One fault is really applied, and caught by a test; the tree is as it was.
func TestOneIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED-CHECK: it compiles the simulator's tests twice")
	}
	ok, err := check("round-no-resume", "", 1, false)
	if err != nil || !ok {
		t.Errorf("caught: %v, %v", ok, err)
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name, out, test string
		caught          bool
	}{
		{"a test", "--- FAIL: TestA (0.1s)\n    x_test.go:1: no\nFAIL\n", "TestA", true},
		{"its part", "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n        --- FAIL: TestA/b/c (0s)\n    --- FAIL: TestA/d (0s)\n--- FAIL: TestE (0s)\n", "TestA/b/c", true},
		{"a panic", "--- FAIL: TestA (0.1s)\npanic: index out of range [recovered]\n", "TestA (panic: index out of range [recovered])", true},
		{"a hang", "panic: test timed out after 20s\n\trunning tests:\n\t\tTestA (20s)\n", "TestA (it hangs)", true},
		{"no compilation", "FAIL\tseedwalk/sim [build failed]\n", "it does not run:\nFAIL\tseedwalk/sim [build failed]\n", false},
	} {
		if test, caught := failure(c.out); test != c.test || caught != c.caught {
			t.Errorf("%s: %q, %v", c.name, test, caught)
		}
	}
}
