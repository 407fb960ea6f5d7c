package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// lines are the new lines of files.
type lines map[string]map[int]bool

func (l lines) has(name string, line int) bool {
	return l[name][line] || l[name][0] // 0: a new file
}

// changes returns the lines that are not in the main branch, and the subjects of the commits
// that are not in it. In a clone without history, only uncommitted lines are new.
func changes(root, base string) (added lines, subjects []string) {
	if base == "" {
		base = branchPoint(root)
	}
	if out, err := git(root, "log", "--no-merges", "--format=%s", base+"..HEAD"); err == nil && out != "" {
		subjects = strings.Split(strings.TrimSpace(out), "\n")
	}
	out, err := git(root, "diff", "-M", "-U0", "--no-color", "--no-ext-diff", "--src-prefix=a/",
		"--dst-prefix=b/", base, "--", "*.go", "*.md")
	if err != nil {
		fmt.Printf("SKIPPED-CHECK: git has no revision %s: new lines are not checked, only counts\n", base)
	}
	added = parseDiff(out)
	if out, err = git(root, "ls-files", "--others", "--exclude-standard", "--", "*.go", "*.md"); err == nil {
		for name := range strings.Lines(out) {
			added[strings.TrimSuffix(name, "\n")] = map[int]bool{0: true}
		}
	}
	return added, subjects
}

// branchPoint returns the commit at which HEAD left the main branch. It returns "HEAD" if git
// does not know a common commit, for example in a shallow clone.
func branchPoint(root string) string {
	for _, main := range []string{"origin/main", "main"} {
		if out, err := git(root, "merge-base", "HEAD", main); err == nil {
			return strings.TrimSpace(out)
		}
	}
	return "HEAD"
}

var hunk = regexp.MustCompile(`^@@ -[0-9,]+ \+([0-9]+)(?:,([0-9]+))? @@`)

// parseDiff returns the added lines of a diff without context.
func parseDiff(diff string) lines {
	added, name := lines{}, ""
	left := 0 // lines of the hunk that begin with + and are not a header
	for line := range strings.Lines(diff) {
		switch m := hunk.FindStringSubmatch(line); {
		case left > 0 && line[0] == '+':
			left--
		case left > 0 && line[0] == '-':
		case strings.HasPrefix(line, "+++ b/"):
			name = strings.TrimSpace(line[len("+++ b/"):])
			added[name] = map[int]bool{}
		case m != nil && added[name] != nil:
			first, _ := strconv.Atoi(m[1])
			left = 1
			if m[2] != "" {
				left, _ = strconv.Atoi(m[2])
			}
			for i := range left {
				added[name][first+i] = true
			}
		}
	}
	return added
}
