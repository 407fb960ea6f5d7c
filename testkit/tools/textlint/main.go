// Command textlint checks the text of the repository: the length of lines in Go, a list of words
// in comments, the links in Markdown, and the subjects of commits.
//
// Lines that differ from the main branch must be clean, and so must commits that are not in it.
// Older lines may have faults, but no folder may have more of them than allowed.txt lists.
// textlint -update lowers the counts. Run it from the root of the repository.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	base := flag.String("base", "", "revision to compare with (default: where HEAD left origin/main or main)")
	update := flag.Bool("update", false, "write the counts of today's tree to allowed.txt")
	flag.Parse()
	problems, err := run(".", *base, *update)
	if err != nil {
		fmt.Fprintln(os.Stderr, "textlint:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// allowedFile holds the counts of old faults.
const allowedFile = "testkit/tools/textlint/allowed.txt"

// run checks the tree in root and returns one line for each problem.
func run(root, base string, update bool) (problems []string, err error) {
	added, subjects := changes(root, base)
	files, counts := listFiles(root), map[string]count{}
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted in the working tree
		}
		for _, f := range faultsOf(name, b) {
			if added.has(name, f.line) {
				problems = append(problems, fmt.Sprintf("%s:%d: %s", name, f.line, f.text))
			}
			c := counts[path.Dir(name)]
			c.add(f.kind)
			counts[path.Dir(name)] = c
		}
		if strings.HasSuffix(name, ".md") {
			problems = append(problems, brokenLinks(root, name, b)...)
		}
	}
	for _, s := range subjects {
		if n := len([]rune(s)); n > maxSubject {
			problems = append(problems,
				fmt.Sprintf("commit subject of %d characters, at most %d: %s", n, maxSubject, s))
		}
	}
	allowed := filepath.Join(root, allowedFile)
	if len(files) == 0 {
		return nil, nil
	}
	if update {
		return problems, writeCounts(allowed, counts)
	}
	more, err := exceeding(allowed, counts)
	return append(problems, more...), err
}

// listFiles returns the Go and Markdown files of the repository, new ones included.
func listFiles(root string) (files []string) {
	out, err := git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.go", "*.md")
	if err != nil {
		fmt.Println("SKIPPED-CHECK: no git tree: the text is not checked")
		return nil
	}
	for name := range strings.Lines(out) {
		name = strings.TrimSuffix(name, "\n")
		if !strings.Contains("/"+name, "/testdata/") {
			files = append(files, name)
		}
	}
	return files
}

func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git",
		append([]string{"-C", root, "-c", "core.quotePath=false"}, args...)...).Output()
	return string(out), err
}
