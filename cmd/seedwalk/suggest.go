package main

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// didYouMean is what to add to a complaint about a word that is none of all: the
// nearest of them, "" if none is near.
func didYouMean(word string, all []string) string {
	best, near := "", max(2, len(word)/3)+1
	for _, k := range all {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < near {
			best, near = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// longestWord: no word of ours is longer, and what is longer is near to none.
const longestWord = 100

// distance counts the letters to put in, leave out, change or swap with their neighbour
// that make b of a (optimal string alignment).
func distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return max(len(a), len(b))
	}
	var d [longestWord + 1][longestWord + 1]int
	for i := 0; i <= len(a); i++ {
		for j := 0; j <= len(b); j++ {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// wrongValue is package flag's complaint about a value.
var wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([^ :]+): (.*)$`)

// flagComplaint says what is wrong with a flag, in our words and with the flag as it is typed.
func flagComplaint(f *flag.FlagSet, err error) string {
	text := err.Error()
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		why := m[3]
		switch why {
		case "parse error":
			why = "not " + kindOf(f, m[2])
		case "value out of range":
			why = "too large or too small"
		}
		return fmt.Sprintf("--%s %s: %s", m[2], m[1], why)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return "--" + strings.TrimLeft(name, "-") + " needs a value"
	}
	name, ok := strings.CutPrefix(text, "flag provided but not defined: -")
	if !ok {
		return text
	}
	name = "--" + strings.TrimLeft(name, "-")
	var known []string
	f.VisitAll(func(g *flag.Flag) { known = append(known, "--"+g.Name) })
	return "there is no flag " + name + didYouMean(name, known)
}

// kindOf names the kind of value that a flag takes.
func kindOf(f *flag.FlagSet, name string) string {
	g := f.Lookup(name)
	if g == nil {
		return "a valid value"
	}
	getter, ok := g.Value.(flag.Getter)
	if !ok {
		return "a valid value"
	}
	switch getter.Get().(type) {
	case int, int64, uint, uint64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case time.Duration:
		return "a time such as 30s or 2m"
	}
	return "a valid value"
}
