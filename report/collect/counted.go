package collect

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
)

// counted formats n with its noun. The noun is "read", whose plural is "reads", or both
// forms: "wait or lock|waits and locks".
func counted(n int64, noun string) string {
	one, many, both := strings.Cut(noun, "|")
	if !both {
		many = one + "s"
	}
	if n == 1 {
		return "1 " + one
	}
	return export.Thousands(n) + " " + many
}

// sentence is fmt.Sprintf with a comma before each three digits of int64 numbers, for the verb %v.
func sentence(format string, args ...any) string {
	for i, a := range args {
		if n, ok := a.(int64); ok {
			args[i] = export.Thousands(n)
		}
	}
	return fmt.Sprintf(format, args...)
}

// countLine describes a counter for the summary: the things counted, and what happened to them. The text fits
// one and many. If it ends in ofSamples, the line ends with the share of all samples.
type countLine struct{ key, noun, text string }

const ofSamples = " (SHARE of the samples)"

// shareOfSamples returns the share of n samples without a stack, as text. c has the counters of the others.
func shareOfSamples(n int64, c map[string]int64) string {
	share := 100 * float64(n) / float64(n+c["timed"]+c["outside"]+c["rests"]+c["suspended"])
	if share < 0.1 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", share)
}

// countLines returns the lines of the counters that are not 0.
func countLines(c map[string]int64, lines []countLine) (out []string) {
	for _, l := range lines {
		if n := c[l.key]; n > 0 {
			text := strings.Replace(l.text, "SHARE", shareOfSamples(n, c), 1)
			out = append(out, counted(n, l.noun)+" "+text)
		}
	}
	return out
}
