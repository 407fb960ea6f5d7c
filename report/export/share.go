package export

import (
	"fmt"
	"math"
)

// fewSamples is the number of samples below which a time is marked as weak: its standard
// error is a third of it, or more.
const fewSamples = 10

// isWeak reports whether a time with count samples is marked. A time without samples comes
// from a clock and is exact.
func isWeak(count int64) bool { return count > 0 && count < fewSamples }

// share formats a percentage with count samples. It returns "" for a negative part, shows only
// the digits that the samples support, and marks a weak value with a tilde.
func share(part, count, all int64) string {
	if part < 0 {
		return ""
	}
	f := 100 * float64(part) / float64(all)
	text := fmt.Sprintf("%.*f %%", shareDigits(f, count), f)
	if least := math.Pow10(-shareDigits(f, count)); part > 0 && f < least/2 {
		text = fmt.Sprintf("<%.*f %%", shareDigits(f, count), least)
	}
	if isWeak(count) {
		return "~" + text
	}
	return text
}

// shareDigits returns how many decimals the samples support: none if the standard error is
// half a percent or more, else one.
func shareDigits(percent float64, count int64) int {
	if count <= 0 {
		return 1
	}
	n := float64(count)
	deviation := percent / math.Sqrt(n) * math.Sqrt(max(0, 1-percent/100))
	if max(deviation, percent/n) >= 0.5 { // of all or nearly all, one sample more or less
		return 0
	}
	return 1
}
