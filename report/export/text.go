package export

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// gapCount is a reason and the number of samples with it.
type gapCount struct {
	reason string
	count  int64
}

// sortedGaps lists reasons, the most frequent first.
func sortedGaps(s *Stats) []gapCount {
	out := make([]gapCount, 0, len(s.Gaps))
	for r, n := range s.Gaps {
		out = append(out, gapCount{clean(r), n})
	}
	slices.SortFunc(out, func(a, b gapCount) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.reason, b.reason))
	})
	return out
}

// plural is a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands writes n with a comma before each three digits.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// percent formats part/whole, "-" if whole is 0. It shows 100 % and 0 % only for exact values.
func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	f := 100 * float64(part) / float64(whole)
	switch {
	case part < whole && f > 99.99:
		f = 99.99
	case part > 0 && f < 0.01:
		return "<0.01 %"
	}
	return fmt.Sprintf("%.2f %%", f)
}

// shortTime formats a duration with three digits, the precision of the measurement.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	case d < 2*time.Minute:
		return digits(float64(d)/1e9) + " s"
	}
	return d.Round(time.Second).String()
}

func digits(f float64) string {
	switch {
	case f < 9.995:
		return fmt.Sprintf("%.2f", f)
	case f < 99.95:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}
