// Package traceevent writes Chrome's Trace Event Format as JSON, for Perfetto and chrome://tracing.
//
// Sources: "Trace Event Format" of the Chromium project, sections JSON Object Format, Complete
// Events, and Metadata Events.
//
// Glossary. A slice is an interval of a track. A track is a thread, or what is shown like one.
//
// Strategy. Readers need the slices of a track to nest. Outer slices are measured: one is cut only
// where the outer slice around it ends, or where the recording begins. Inner slices are split where an
// outer one begins or ends. A line holds one event.
//
// Known gaps: only complete events and metadata are written.
package traceevent

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// Slice is an interval of a track, in nanoseconds since the start of the recording.
type Slice struct {
	Name, Category string
	Start, End     int64
	Args           any // a JSON object; nil = none
}

// Track is a thread. Slices of Inner do not overlap each other.
type Track struct {
	ID           int
	Name         string
	Outer, Inner []Slice
}

// Trace is a whole file, of one process.
type Trace struct {
	PID    int
	Name   string            // of the process
	Other  map[string]string // properties of the whole file
	Tracks []Track           // in the order to show them
}

// micros is a time as the format has it, in microseconds with three decimals.
type micros int64

func (m micros) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(nil, int64(m)/1000, 10)
	return append(b, '.', '0'+byte(m%1000/100), '0'+byte(m%100/10), '0'+byte(m%10)), nil
}

// event is an event of the format.
type event struct {
	Name     string  `json:"name"`
	Category string  `json:"cat"`
	Phase    string  `json:"ph"`
	Start    micros  `json:"ts"`
	Duration *micros `json:"dur,omitempty"`
	PID      int     `json:"pid"`
	TID      int     `json:"tid"`
	Args     any     `json:"args,omitempty"`
}

// Write writes the file.
func (t *Trace) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	other, err := json.Marshal(t.Other)
	if err != nil {
		return err
	}
	out.WriteString(`{"displayTimeUnit":"ms","otherData":`)
	out.Write(other)
	out.WriteString(",\"traceEvents\":[\n")
	if err := t.meta(out, "process_name", 0, map[string]any{"name": t.Name}, ""); err != nil {
		return err
	}
	for i := range t.Tracks {
		k := &t.Tracks[i]
		err := cmp.Or(t.meta(out, "thread_name", k.ID, map[string]any{"name": k.Name}, ",\n"),
			t.meta(out, "thread_sort_index", k.ID, map[string]any{"sort_index": i}, ",\n"), t.slices(out, k))
		if err != nil {
			return err
		}
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}

func (t *Trace) meta(out *bufio.Writer, name string, tid int, args any, before string) error {
	return put(out, &event{Name: name, Category: "__metadata", Phase: "M", PID: t.PID,
		TID: tid, Args: args}, before)
}

func (t *Trace) slices(out *bufio.Writer, k *Track) error {
	for _, s := range nest(k.Outer, k.Inner) {
		length := micros(s.End - s.Start)
		e := event{s.Name, s.Category, "X", micros(s.Start), &length, t.PID, k.ID, s.Args}
		if err := put(out, &e, ",\n"); err != nil {
			return err
		}
	}
	return nil
}

func put(out *bufio.Writer, e *event, before string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	out.WriteString(before)
	_, err = out.Write(b)
	return err
}

// nest returns the slices of a track by their start, enclosing ones first. They nest.
func nest(outer, inner []Slice) []Slice {
	all := slices.Clone(outer)
	for i := range all { // no slice begins before the recording, or ends before it begins
		all[i].Start = max(0, all[i].Start)
		all[i].End = max(all[i].Start, all[i].End)
	}
	byStart := func(a, b Slice) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start),
			cmp.Compare(b.End, a.End))
	}
	slices.SortStableFunc(all, byStart)
	var open []int64   // ends of the slices that are open, innermost last
	var bounds []int64 // where outer slices begin and end
	for i := range all {
		s := &all[i]
		for len(open) > 0 && open[len(open)-1] <= s.Start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			s.End = min(s.End, open[len(open)-1])
		}
		open = append(open, s.End)
		bounds = append(bounds, s.Start, s.End)
	}
	slices.Sort(bounds)
	for _, s := range inner {
		at, _ := slices.BinarySearch(bounds, s.Start+1)
		for ; at < len(bounds) && bounds[at] < s.End; at++ {
			if part := s; bounds[at] > s.Start {
				part.End, s.Start = bounds[at], bounds[at]
				all = append(all, part)
			}
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, byStart)
	return all
}
