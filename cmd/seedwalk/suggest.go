package main

import (
	"flag"
	"fmt"
	"strings"
)

// didYouMean is what to add to a complaint about a word that is none of known: the
// nearest of them, "" if none is near.
func didYouMean(word, mark string, known []string) string {
	best, at := "", 1+len(word)/3
	for _, k := range known {
		if d := distance(word, k); d <= at && (best == "" || d < at) {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", mark, best)
}

// distance counts the letters to insert, delete, replace or swap with their neighbour
// that make b of a (optimal string alignment). Words of users are short: what is long
// is far from everything.
func distance(a, b string) int {
	const longest = 40
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var d [longest + 1][longest + 1]int
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
	f.VisitAll(func(g *flag.Flag) { known = append(known, g.Name) })
	return didYouMean(strings.TrimLeft(name, "-"), "--", known)
}
