// Package replay runs the walkers over recorded inputs with true answers and
// counts what is right.
//
// Source: the schemas of the project's vectors: PE points and records (JSON
// lines), rows of call frame information beside their ELF files (JSON lines),
// stack snapshots (h4.snap.v1), and the archive of the latter two.
//
// Glossary. A *point* is one question with a known answer: a step from one
// instruction, a row, a record, a stack. A point is *right*, *wrong*, or
// *refused*: the walker gave no answer or marked it doubtful. A *kind* is a
// schema's kind, or a snapshot's class.
//
// Strategy: what a file is its content says, never its name; names only lead to
// the files beside it (blobs, modules, the ELF files of rows). Every kind is
// judged through the same public interface that users of the walkers have.
//
// Known gaps: EventPipe traces and contract descriptors are named as not
// handled; other tools of the project read them.
package replay

import (
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/internal/testkit/snap"
)

// Pair is one value expected and got, as text.
type Pair struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// Mismatch is one point that is not right, in full.
type Mismatch struct {
	ID     string   `json:"id"`
	Where  string   `json:"where"`            // the address and what is there
	Why    string   `json:"why"`              // what differs, or the reason of a refusal
	Values []Pair   `json:"values,omitempty"` // registers, frames or fields side by side
	Code   []string `json:"code,omitempty"`   // the instructions around, disassembled
	Info   []string `json:"info,omitempty"`   // the unwind codes or rows applied
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

// Bad reports whether the tally holds a failure.
func (t *Tally) Bad() bool { return t.Wrong > 0 || t.Strict && t.Refused > 0 }

// Aside is a file that was not replayed and why.
type Aside struct {
	File  string `json:"file"`
	Why   string `json:"why"`
	Error bool   `json:"error"` // it should have been readable
}

// Report is the outcome of a run.
type Report struct {
	Tallies []*Tally `json:"results"`
	Aside   []Aside  `json:"not_replayed,omitempty"`
}

// Bad reports whether any point failed.
func (r *Report) Bad() bool {
	for _, t := range r.Tallies {
		if t.Bad() {
			return true
		}
	}
	return false
}

// Unreadable reports whether a file that was asked for could not be read.
func (r *Report) Unreadable() bool {
	for _, a := range r.Aside {
		if a.Error {
			return true
		}
	}
	return false
}

// Runner replays files into a Report. It is not safe for concurrent use.
type Runner struct {
	Max    int       // mismatches kept in full per file and kind
	Log    io.Writer // progress; nil = none
	Report Report

	file     string
	now      map[string]*Tally
	archives map[string]*snap.Archive
}

// verdict is a point's outcome.
type verdict uint8

const (
	right verdict = iota
	wrong
	refused
)

// tally returns the counts of a kind in the current file.
func (r *Runner) tally(kind string, strict bool) *Tally {
	t := r.now[kind]
	if t == nil {
		t = &Tally{File: r.file, Kind: kind, Strict: strict}
		r.now[kind] = t
		r.Report.Tallies = append(r.Report.Tallies, t)
	}
	return t
}

// count adds a point. full is asked for its mismatch only if that is kept.
func (r *Runner) count(t *Tally, v verdict, full func() Mismatch) {
	t.Points++
	switch v {
	case right:
		t.Right++
		return
	case wrong:
		t.Wrong++
	case refused:
		t.Refused++
		if !t.Strict {
			return
		}
	}
	if len(t.Mismatches) < r.Max {
		t.Mismatches = append(t.Mismatches, full())
	}
}

// begin starts a file's counts.
func (r *Runner) begin(file string) {
	r.file, r.now = file, map[string]*Tally{}
	if r.Log != nil {
		fmt.Fprintf(r.Log, "%s\n", file)
	}
}

func (r *Runner) aside(file, why string) {
	r.Report.Aside = append(r.Report.Aside, Aside{File: file, Why: why})
}

func (r *Runner) failed(file string, err error) {
	r.Report.Aside = append(r.Report.Aside, Aside{File: file, Why: err.Error(), Error: true})
}
