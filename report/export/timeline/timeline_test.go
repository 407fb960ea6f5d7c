package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestSpans(t *testing.T) {
	type sample struct {
		from, to int64
		name     string
	}
	for _, c := range []struct {
		what string
		in   []sample
		want string
	}{
		{"one after the other", []sample{{0, 10, "a"}, {10, 20, "b"}}, "a 0-10, b 10-20"},
		{"free time stays", []sample{{5, 10, "a"}, {12, 20, "b"}}, "a 5-10, b 12-20"},
		{"a long one around short ones", []sample{{10, 12, "a"}, {20, 21, "b"}, {5, 40, "c"}},
			"c 5-10, a 10-12, c 12-20, b 20-21, c 21-40"},
		{"a long one that begins in a free time",
			[]sample{{10, 12, "a"}, {20, 21, "b"}, {15, 30, "c"}, {2, 31, "d"}},
			"d 2-10, a 10-12, d 12-15, c 15-20, b 20-21, c 21-30, d 30-31"},
		{"more time than there is, and then less", []sample{{0, 10, "a"}, {4, 20, "b"}, {30, 40, "c"}},
			"a 0-10, b 10-20, b 20-26, c 30-40"},
		{"two that lack time", []sample{{0, 10, "a"}, {6, 12, "b"}, {10, 14, "c"}, {19, 20, "d"}},
			"a 0-10, b 10-12, c 12-14, b 14-18, c 18-19, d 19-20"},
		{"no time", []sample{{10, 10, "a"}, {10, 12, "b"}}, "b 10-12"},
		{"before the start", []sample{{-5, 3, "a"}}, "a 0-3"},
		{"all taken", []sample{{0, 10, "a"}, {2, 10, "b"}}, "a 0-10"},
		{"an end that is too early", []sample{{5, 10, "a"}, {0, 3, "b"}}, "b 0-3, a 5-10"},
	} {
		var l Line[string]
		for _, s := range c.in {
			l.Add(s.from, s.to, s.name)
		}
		var got []string
		for _, s := range l.Spans() {
			got = append(got, fmt.Sprintf("%s %d-%d", s.Value, s.From, s.To))
		}
		expect.Equal(t, strings.Join(got, ", "), c.want, c.what)
	}
}

// Each moment that a sample claims is in one span. A sample has at most the time that it claims, and all of
// it if there is enough free time behind it.
func TestEachMoment(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var l Line[int]
		var lacks []int64
		var claimed, held [400]bool
		end := int64(0)
		for at := int64(0); at < 190; at += r.Int64N(10) {
			begin := max(0, at-r.Int64N(60))
			l.Add(begin, at, len(lacks))
			lacks, end = append(lacks, at-begin), at
			for m := begin; m < at; m++ {
				claimed[m] = true
			}
		}
		l.Add(399, 400, len(lacks))
		last := int64(0)
		for _, s := range l.Spans() {
			expect.True(t, s.From >= last && s.To > s.From, "span %v after %d", s, last)
			for last = s.From; last < s.To; last++ {
				held[last] = true
			}
			if s.Value < len(lacks) {
				lacks[s.Value] -= s.To - s.From
			}
		}
		for m := range end {
			expect.True(t, held[m] || !claimed[m], "nothing at %d", m)
		}
		left := int64(0)
		for i, n := range lacks {
			expect.True(t, n >= 0, "sample %d has too much", i)
			left += n
		}
		expect.True(t, left == 0 || !slices.Contains(held[:399], false),
			"%d lack, and there is free time", left)
	}
}
