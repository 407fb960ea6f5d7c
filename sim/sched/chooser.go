package sched

import "math/bits"

// Chooser decides a run. Choose returns a number in [0, n); n is above 1. The scheduler calls it
// wherever a run has several options.
type Chooser interface{ Choose(n int) int }

// Random returns a chooser of random numbers (SplitMix64). They depend on run only, and are the
// same in every process and version.
func Random(run uint64) Chooser { return &random{run} }

type random struct{ x uint64 }

func (r *random) Choose(n int) int {
	r.x += 0x9e3779b97f4a7c15
	z := r.x
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	hi, _ := bits.Mul64(z^z>>31, uint64(n))
	return int(hi)
}

// Replay returns a chooser that repeats the choices. After the last one, it returns 0, which means
// that the current actor continues.
func Replay(choices []int) Chooser { return &replay{choices} }

type replay struct{ left []int }

func (r *replay) Choose(int) int {
	if len(r.left) == 0 {
		return 0
	}
	c := r.left[0]
	r.left = r.left[1:]
	return c
}
