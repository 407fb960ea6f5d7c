package arch

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// quoted is text between backquotes in a document.
var quoted = regexp.MustCompile("`([^`\n]+)`")

// Files and tests named in the documents for contributors exist.
func TestContributingNamesWhatIsThere(t *testing.T) {
	const root = "../.."
	b, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	must.Do(t, err)
	tests, err := exec.Command("git", "-C", root, "grep", "-hoE", `^func Test\w+`, "--", "*_test.go").Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no git tree here, so CONTRIBUTING.md is not compared with it")
	}
	paths, names := 0, 0
	for _, m := range quoted.FindAllStringSubmatch(string(b), -1) {
		word := m[1]
		switch {
		case regexp.MustCompile(`^Test\w+$`).MatchString(word):
			names++
			expect.True(t, strings.Contains(string(tests)+"\n", "func "+word+"\n"),
				"there is no test %s", word)
		case regexp.MustCompile(`^[a-z]+(/[\w.]+)*/?$`).MatchString(word) &&
			(strings.Contains(word, "/") || strings.HasSuffix(word, ".go")):
			paths++
			_, err := os.Stat(filepath.Join(root, word))
			expect.True(t, err == nil, "there is no %s", word)
		}
	}
	expect.True(t, paths >= 30 && names >= 15, "only %d paths and %d tests were recognised", paths, names)
}

// chapters are the parts of a product package's comment: sources of facts, glossary, strategy, and known
// gaps.
var chapters = []string{"Source", "Glossary", "Strategy", "Known gaps"}

// Test kit, tools and packages of tests only describe their purpose; the rest is in their code.
func needsChapters(name string) bool {
	for _, p := range []string{"testkit/", "bench", "fuzz", "profiler/e2e", "capi/examples"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return name != "."
}

// Every package has a comment with its chapters.
func TestPackagesAreDocumented(t *testing.T) {
	for _, r := range rooms {
		text := packageComment(t, filepath.Join("../..", r.Name))
		if text == "" {
			t.Errorf("%s has no package comment", r.Name)
			continue
		}
		for _, c := range chapters {
			if needsChapters(r.Name) && !strings.Contains(text, c) {
				t.Errorf("%s: the package comment has no %q", r.Name, c)
			}
		}
	}
}

// packageComment is the longest comment before a package clause in a folder.
func packageComment(t *testing.T, dir string) (text string) {
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, path := range files {
		f := must.Get(parser.ParseFile(token.NewFileSet(), path, nil,
			parser.ParseComments|parser.PackageClauseOnly))(t)
		if f.Doc != nil && len(f.Doc.Text()) > len(text) {
			text = f.Doc.Text()
		}
	}
	return text
}
