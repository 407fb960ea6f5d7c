package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// count is the number of faults in a folder.
type count struct{ long, words int }

func (c *count) add(k kind) {
	if k == longLine {
		c.long++
	} else {
		c.words++
	}
}

// step is the unit of the counts in allowed.txt, so that moving a line or two is no fault.
const step = 10

func (c count) rounded() count {
	up := func(n int) int { return (n + step - 1) / step * step }
	return count{up(c.long), up(c.words)}
}

const allowedHead = "# Old faults by folder: long lines, words. The counts only shrink: textlint -update.\n"

func writeCounts(file string, counts map[string]count) error {
	var b strings.Builder
	b.WriteString(allowedHead)
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		c := counts[dir].rounded()
		fmt.Fprintf(&b, "%s %d %d\n", dir, c.long, c.words)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// exceeding returns a line for each folder that has more faults than the file allows.
func exceeding(file string, counts map[string]count) (problems []string, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	allowed := map[string]count{}
	for line := range strings.Lines(string(b)) {
		var dir string
		var c count
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &dir, &c.long, &c.words); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, strings.TrimSpace(line), err)
		}
		allowed[dir] = c
	}
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		c, a := counts[dir], allowed[dir]
		if c.long > a.long || c.words > a.words {
			problems = append(problems,
				fmt.Sprintf("%s: %d lines beyond column %d (%d allowed), %d words of the list (%d allowed)",
					dir, c.long, maxColumns, a.long, c.words, a.words))
		}
	}
	return problems, nil
}
