package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// brokenLinks returns a line for each link to a file or a heading that is not in the repository.
func brokenLinks(root, name string, b []byte) (problems []string) {
	text := fence.ReplaceAllString(string(b), "")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, ":") {
			continue // another site
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		to := filepath.Join(root, filepath.FromSlash(file))
		if _, err := os.Stat(to); err != nil {
			problems = append(problems, fmt.Sprintf("%s: link to %s, which is missing", name, m[1]))
			continue
		}
		if anchor == "" || !strings.HasSuffix(file, ".md") {
			continue
		}
		if page, err := os.ReadFile(to); err != nil || !hasHeading(string(page), anchor) {
			problems = append(problems, fmt.Sprintf("%s: link to %s, which has no such heading", name, m[1]))
		}
	}
	return problems
}

// hasHeading reports whether a page has the heading of an anchor, or an HTML anchor of that name.
func hasHeading(page, anchor string) bool {
	return strings.Contains(page, `id="`+anchor+`"`) || strings.Contains(page, `name="`+anchor+`"`) ||
		slices.ContainsFunc(heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1),
			func(m []string) bool { return slug(m[1]) == anchor })
}

// slug is the anchor that GitHub gives a heading.
func slug(text string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
