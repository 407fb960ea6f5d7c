package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// repo is a repository with one commit on main and a branch with work on it.
func repo(t *testing.T) string {
	t.Helper()
	needs.Command(t, "git")
	root := t.TempDir()
	long := "// " + strings.Repeat("old ", 40)
	write(t, root, allowedFile, ". 10 10\n")
	write(t, root, "old.go", "package old\n\n"+long+"\n// told\nvar x int\n")
	write(t, root, "README.md", "# Title here\n\ntold [below](#title-here) [code](old.go)\n")
	must(t, root, "init", "-q", "-b", "main")
	must(t, root, "add", "-A")
	must(t, root, "commit", "-q", "-m", strings.Repeat("an old subject ", 10))
	must(t, root, "checkout", "-q", "-b", "work")
	return root
}

func must(t *testing.T, root string, args ...string) {
	t.Helper()
	args = append([]string{"-C", root, "-c", "user.name=x", "-c", "user.email=x@example.com", "-c",
		"commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRules breaks each rule once, in a new file, in a new line, and in a commit.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, file, text, subject string
		want                      []string // parts of the lines, in order
	}{
		{"nothing new", "", "", "", nil},
		{"a clean file", "new.go",
			"package old\n\n// A plain comment.\nvar y = \"told\" // in a string\n", "area: add a file", nil},
		{"a long comment", "new.go", "package old\n\n// " + strings.Repeat("long ", 22) + "\nvar y int\n", "",
			[]string{"new.go:3: comment ends in column 113, at most 110"}},
		{"a long block comment", "new.go",
			"package old\n\n/*\n" + strings.Repeat("long ", 30) + "\n*/\nvar y int\n", "",
			[]string{"new.go:4: comment ends in column 150"}},
		{"a comment behind code", "new.go",
			"package old\n\nvar y = \"" + strings.Repeat("long ", 22) + "\" // here\n", "",
			[]string{"new.go:3: comment ends"}},
		{"a long line of code", "new.go",
			"package old\n\nvar y = " + strings.Repeat("1 + ", 30) + "1\n", "",
			[]string{"new.go:3: line ends in column 129, at most 110"}},
		{"a long string", "new.go",
			"package old\n\nvar y = \"" + strings.Repeat("long ", 30) + "\"\n", "", nil},
		{"a word", "new.go", "package old\n\n// y is told anew.\nvar y int\n", "",
			[]string{`new.go:3: "told"`, `new.go:3: "anew"`}},
		{"a word in a document", "docs/a.md", "of which\n```\ntold\n```\n", "",
			[]string{`docs/a.md:1: "of which"`}},
		{"a word in an old file", "old.go", "package old\n\n// told\nvar x int // in vain\n", "",
			[]string{`old.go:4: "in vain"`}},
		{"a missing file", "docs/a.md", "[x](../none.go) [y](https://example.com/none)\n", "",
			[]string{"docs/a.md: link to ../none.go, which is missing"}},
		{"a missing heading", "docs/a.md", "[x](../README.md#other) [y](../README.md#title-here)\n", "",
			[]string{"link to ../README.md#other, which has no such heading"}},
		{"a long subject", "new.go", "package old\n", "area: " + strings.Repeat("x", 67),
			[]string{"commit subject of 73 characters, at most 72"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := repo(t)
			if c.file != "" {
				write(t, root, c.file, c.text)
			}
			if c.subject != "" {
				must(t, root, "add", "-A")
				must(t, root, "commit", "-q", "-m", c.subject)
			}
			got, err := run(root, "", false)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if i >= len(got) || !strings.Contains(got[i], want) {
					t.Fatalf("%q, want %q", got, c.want)
				}
			}
			if c.file == "docs/a.md" && len(got) > 0 {
				got = got[:len(c.want)] // and the folder is not allowed any
			}
			expect.Equal(t, len(got), len(c.want), "%q, want %q", got, c.want)
		})
	}
}

// TestCounts: on the main branch, or without history, a folder may not have more faults than are
// allowed, and -update writes the counts.
func TestCounts(t *testing.T) {
	root := repo(t)
	must(t, root, "checkout", "-q", "main")
	if got, err := run(root, "", false); err != nil || got != nil {
		t.Errorf("the old tree: %q, %v", got, err)
	}
	write(t, root, "b.go", "package old\n"+strings.Repeat("\n// told\n", 10))
	must(t, root, "add", "-A")
	must(t, root, "commit", "-q", "-m", "area: more")
	if got, err := run(root, "", false); err != nil || len(got) != 1 ||
		!strings.HasPrefix(got[0],
			".: 1 lines beyond column 110 (10 allowed), 12 words of the list (10 allowed)") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := run(root, "", true); err != nil {
		t.Fatal(err)
	}
	if got, err := run(root, "none-such", false); err != nil || got != nil {
		t.Errorf("after the update: %q, %v", got, err)
	}
	if b, _ := os.ReadFile(filepath.Join(root, allowedFile)); string(b) != allowedHead+". 10 20\n" {
		t.Errorf("%s", b)
	}
	write(t, root, allowedFile, "x y\n")
	if _, err := run(root, "", false); err == nil {
		t.Error("a damaged list of counts is no error")
	}
}

func TestSlug(t *testing.T) {
	for text, want := range map[string]string{"How do I get native names?": "how-do-i-get-native-names",
		"In the process: `record --events`": "in-the-process-record---events",
		"[A link](x.md) here":               "a-link-here"} {
		expect.Equal(t, slug(text), want, text)
	}
}
