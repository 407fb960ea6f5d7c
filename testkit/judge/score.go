// Package judge runs the readers and walkers over recorded inputs, and compares the
// results with the recorded truth. The tests of packages and `seedwalk replay` both
// use it.
//
// Source: the schemas of the project's vectors: PE points and records (JSON
// lines), rows of call frame information beside their ELF files (JSON lines),
// stack snapshots (h4.snap.v1).
//
// Glossary. A *point* is one case with a known result: a step from one instruction,
// a row, a record, or a stack. A point is *right*, *wrong*, or *refused*. It is
// refused if the walker returned no result or marked it doubtful. A *kind* is a
// schema's kind, or a snapshot's class. A kind is *strict* if a result is known to
// be possible for each of its points, and otherwise *lax*.
//
// Strategy: the package uses the public interface of the walkers, by single steps
// and by whole walks. Both must agree. For the first few points of a kind that are
// not right, it keeps all values, the code, and the unwind data.
package judge

import (
	"errors"
	"slices"
)

// ErrFormat means that an input is no vector of a known schema.
var ErrFormat = errors.New("no vector of a known schema")

// Pair is an expected value and the actual one, as text.
type Pair struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Mismatch describes one point that is not right.
type Mismatch struct {
	ID      string   `json:"id"`
	Verdict string   `json:"verdict"`          // wrong | refused
	Where   string   `json:"where"`            // the address and what is there
	Why     string   `json:"why"`              // what differs, or the reason of a refusal
	Values  []Pair   `json:"values,omitempty"` // registers, frames or fields side by side
	Code    []string `json:"code,omitempty"`   // the instructions around, disassembled
	Info    []string `json:"info,omitempty"`   // the unwind codes or rows applied
}

// Tally counts the points of one kind in one file.
type Tally struct {
	File    string `json:"file"`
	Kind    string `json:"kind"`
	Points  int    `json:"points"`
	Right   int    `json:"right"`
	Wrong   int    `json:"wrong"`
	Refused int    `json:"refused"`
	Strict  bool   `json:"strict"` // an answer is known to be possible: a refusal is a failure too
	// Of stacks: all frames of the truth, and those right from the leaf on.
	Frames      int        `json:"frames,omitempty"`
	RightFrames int        `json:"right_frames,omitempty"`
	Note        string     `json:"note,omitempty"`
	Mismatches  []Mismatch `json:"mismatches,omitempty"`
}

// Bad reports whether the tally has a failure.
func (t *Tally) Bad() bool { return t.Wrong > 0 || t.Strict && t.Refused > 0 }

// Failure reports whether a mismatch of the tally is one of its failures.
func (t *Tally) Failure(m *Mismatch) bool { return t.Strict || m.Verdict == wrong.String() }

// Score has the counts of one file. The zero Score is ready for use, and keeps no mismatches.
type Score struct {
	File    string
	Max     int // mismatches kept of each kind: Max wrong ones and Max refused ones
	Tallies []*Tally
	Faults  []error // reasons why points could not be judged, each once
}

// maxFaults bounds the reasons of one file.
const maxFaults = 20

// fault adds a reason why a point could not be judged, up to maxFaults.
func (s *Score) fault(err error) {
	known := func(e error) bool { return e.Error() == err.Error() }
	if len(s.Faults) < maxFaults && !slices.ContainsFunc(s.Faults, known) {
		s.Faults = append(s.Faults, err)
	}
}

// verdict is a point's outcome.
type verdict uint8

const (
	right verdict = iota
	wrong
	refused
)

func (v verdict) String() string { return [...]string{"right", "wrong", "refused"}[v] }

// tally returns the counts of a kind.
func (s *Score) tally(kind string, strict bool) *Tally {
	for _, t := range s.Tallies {
		if t.Kind == kind {
			return t
		}
	}
	t := &Tally{File: s.File, Kind: kind, Strict: strict}
	s.Tallies = append(s.Tallies, t)
	return t
}

// count adds a point. It calls full only if it keeps the mismatch.
func (s *Score) count(t *Tally, v verdict, full func() Mismatch) {
	t.Points++
	before := 0
	switch v {
	case right:
		t.Right++
		return
	case wrong:
		before = t.Wrong
		t.Wrong++
	case refused:
		before = t.Refused
		t.Refused++
	}
	if before < s.Max {
		m := full()
		m.Verdict = v.String()
		t.Mismatches = append(t.Mismatches, m)
	}
}
