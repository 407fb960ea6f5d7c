// Package estimate formats values that rest on samples with no more digits than the samples support.
//
// Sources: a value of n samples has a relative standard error of 1/sqrt(n) (Poisson), and a share p
// of all samples one of sqrt((1-p)/n).
//
// Glossary. A weak value rests on so few samples that its standard error is a third of it, or more.
//
// Strategy. A share has no decimals if its standard error is half a percent or more, else one. A
// weak value has a tilde.
//
// Known gaps: samples of one thread are taken as independent of each other.
package estimate

import (
	"fmt"
	"math"
)

// fewSamples is the number of samples below which a time is marked as weak: its standard
// error is a third of it, or more.
const fewSamples = 10

// IsWeak reports whether a time with count samples is marked. A time without samples comes
// from a clock and is exact.
func IsWeak(count int64) bool { return count > 0 && count < fewSamples }

// Share formats a percentage with count samples. It returns "" for a negative part, shows only
// the digits that the samples support, and marks a weak value with a tilde.
func Share(part, count, all int64) string {
	if part < 0 {
		return ""
	}
	f := 100 * float64(part) / float64(all)
	text := fmt.Sprintf("%.*f %%", shareDigits(f, count), f)
	if least := math.Pow10(-shareDigits(f, count)); part > 0 && f < least/2 {
		text = fmt.Sprintf("<%.*f %%", shareDigits(f, count), least)
	}
	if IsWeak(count) {
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
