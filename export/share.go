package export

import (
	"fmt"
	"math"
)

// fewSamples is the number of samples below which a time is marked as weak: its standard
// error is a third of it, or more.
const fewSamples = 10

// isWeak reports whether what rests on count samples is marked. What rests on none is
// read from a clock, and exact.
func isWeak(count int64) bool { return count > 0 && count < fewSamples }

// share is a percentage that rests on count samples, in few columns: "" for a negative
// part, no more digits than the samples carry, and a tilde before a weak one.
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

// shareDigits is how many decimals of a percentage its samples carry: none if its standard
// error is half a percent or more, else one.
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
