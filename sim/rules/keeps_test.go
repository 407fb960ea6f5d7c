package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that are said to enforce rules are there.
func TestEnforcersExist(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "out"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named, n := regexp.MustCompile(`\bTest[A-Z]\w+`), 0
	check := func(rule, text string) {
		for _, name := range named.FindAllString(text, -1) {
			n++
			if !there[name] {
				t.Errorf("%s is said to be enforced by %s, which is nowhere", rule, name)
			}
		}
	}
	for _, r := range Each() {
		check(r.Name, r.Enforced)
	}
	for _, r := range TextRules() {
		check(r.Name, r.Enforced)
	}
	if n < 20 {
		t.Errorf("%d tests are named only", n)
	}
}
