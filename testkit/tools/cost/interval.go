package main

import (
	"math"
	"slices"
)

// interval is a median with its 95 % confidence interval. Bounds are NaN if there are too few
// values.
type interval struct{ low, mid, high float64 }

// doubt is the probability with which an interval may not contain the true value.
const doubt = 0.05

// centre returns the pseudo-median of differences with its interval, by Wilcoxon's signed
// ranks. The pseudo-median is the median of the means of all pairs. The bounds are means of
// pairs, at the rank that doubt gives. The method assumes only that differences are symmetric
// around their median. One disturbed window moves the result by one rank.
//
// Source: Hodges and Lehmann, Estimates of location based on rank tests, 1963; Hollander,
// Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, 3.3.
func centre(d []float64) interval {
	if len(d) == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	means := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i, a := range d {
		for _, b := range d[i:] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	n := len(means)
	mid := (means[n/2] + means[(n-1)/2]) / 2
	cut := critical(len(d))
	if cut == 0 {
		return interval{math.NaN(), mid, math.NaN()}
	}
	return interval{means[cut-1], mid, means[n-cut]}
}

// manyPairs is the number of differences above which the normal distribution approximates
// that of the ranks.
const manyPairs = 60

// critical returns the rank of the mean at the interval's low end, from 1. It returns 0 if there
// are too few differences for an interval.
func critical(n int) int {
	if n > manyPairs {
		mean := float64(n) * float64(n+1) / 4
		sd := math.Sqrt(mean * float64(2*n+1) / 6)
		return int(mean - 1.959964*sd)
	}
	ways := make([]float64, n*(n+1)/2+1) // in which signs make a sum of ranks
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := len(ways) - 1; sum >= rank; sum-- {
			ways[sum] += ways[sum-rank]
		}
	}
	all := math.Pow(2, float64(n))
	for sum, below := 0, 0.0; sum < len(ways); sum++ {
		if below += ways[sum]; below/all > doubt/2 {
			return sum
		}
	}
	return 0
}

// median returns the median of values, or NaN.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
