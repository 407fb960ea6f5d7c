// Package timeline puts the samples of a thread in the order of time.
//
// Sources: none.
//
// Glossary. The *interval* of a sample is the time that the sample represents. It ends when the sample was
// taken. A *span* is a part of an interval.
//
// Strategy. A sampler may find out later what a thread did in an interval that has samples of its own: a
// thread that waited for a processor has a long sample after short ones. The later sample then gets the time
// that no earlier sample has. If that is less than the length of its interval, it gets the rest from free
// time that follows: samplers give some samples more time than has passed, and later ones less, so that sums
// are right. So every sample keeps its length, except near the end of the thread's time.
//
// Known gaps: a sample may then be in several parts.
package timeline

import (
	"cmp"
	"slices"
)

// Span is an interval with the value of its sample.
type Span[T any] struct {
	From, To int64
	Value    T
}

// Line is the time of one thread, from 0 on.
type Line[T any] struct {
	spans []Span[T]
	free  []Span[T] // before end, in order
	owed  []Span[T] // From 0 to what a sample lacks, the oldest first
	end   int64
}

// Add adds a sample. The samples are added in the order of their ends.
func (l *Line[T]) Add(from, to int64, value T) {
	from = max(from, 0)
	if from > l.end {
		l.pay(from)
	}
	lacks := to - from
	put := func(begin, end int64) {
		if begin < end {
			l.spans = append(l.spans, Span[T]{begin, end, value})
			lacks -= end - begin
		}
	}
	for n := len(l.free); n > 0 && l.free[n-1].To > from; n-- {
		g := &l.free[n-1]
		begin := max(g.From, from)
		put(begin, min(g.To, to))
		if g.To = begin; g.From < begin {
			break
		}
		l.free = l.free[:n-1]
	}
	put(max(from, l.end), to)
	l.end = max(l.end, to)
	if lacks > 0 {
		l.owed = append(l.owed, Span[T]{To: lacks, Value: value})
	}
}

// pay divides the time from the end to a later moment among the samples that lack time. The rest is free.
func (l *Line[T]) pay(till int64) {
	for len(l.owed) > 0 && l.end < till {
		o := &l.owed[0]
		part := min(o.To, till-l.end)
		l.spans = append(l.spans, Span[T]{l.end, l.end + part, o.Value})
		l.end += part
		if o.To -= part; o.To == 0 {
			l.owed = l.owed[1:]
		}
	}
	if l.end < till {
		l.free = append(l.free, Span[T]{From: l.end, To: till})
		l.end = till
	}
}

// Spans returns the spans in order. They are not empty and do not overlap.
func (l *Line[T]) Spans() []Span[T] {
	slices.SortFunc(l.spans, func(a, b Span[T]) int { return cmp.Compare(a.From, b.From) })
	return l.spans
}
