package main

import (
	"flag"
	"fmt"
	"strings"
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

// flagAdvice is didYouMean for the flag that package flag complained about.
func flagAdvice(f *flag.FlagSet, complaint error) string {
	_, name, ok := strings.Cut(complaint.Error(), "not defined: -")
	if !ok {
		return ""
	}
	var known []string
	f.VisitAll(func(g *flag.Flag) { known = append(known, "--"+g.Name) })
	return didYouMean("--"+strings.TrimLeft(name, "-"), known)
}
