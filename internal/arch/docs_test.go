package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted is what stands between backquotes in a document.
var quoted = regexp.MustCompile("`([^`\n]+)`")

// A contributor is sent to files and tests that are there.
func TestContributingNamesWhatIsThere(t *testing.T) {
	const root = "../.."
	b, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := exec.Command("git", "-C", root, "grep", "-hoE", `^func Test\w+`, "--", "*_test.go").Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no git tree here, so CONTRIBUTING.md is not held against it")
	}
	paths, names := 0, 0
	for _, m := range quoted.FindAllStringSubmatch(string(b), -1) {
		word := m[1]
		switch {
		case regexp.MustCompile(`^Test\w+$`).MatchString(word):
			names++
			if !strings.Contains(string(tests)+"\n", "func "+word+"\n") {
				t.Errorf("there is no test %s", word)
			}
		case regexp.MustCompile(`^[a-z]+(/[\w.]+)*/?$`).MatchString(word) && (strings.Contains(word, "/") || strings.HasSuffix(word, ".go")):
			paths++
			if _, err := os.Stat(filepath.Join(root, word)); err != nil {
				t.Errorf("there is no %s", word)
			}
		}
	}
	if paths < 30 || names < 15 {
		t.Errorf("only %d paths and %d tests were recognised", paths, names)
	}
}
