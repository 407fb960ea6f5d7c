// Package replay runs the walkers over recorded inputs with true answers and
// counts what is right.
//
// Source: the schemas of the project's vectors. PE points and records are JSON lines. So
// are rows of call frame information, beside their ELF files. Stack snapshots have the
// schema h4.snap.v1. An archive may contain rows and snapshots.
//
// Glossary: that of package judge: points that are right, wrong or refused.
//
// Strategy: the content of a file determines how it is read, and its name does
// not. Names only locate the files beside it (blobs, modules, the ELF files of
// rows). Package judge decides what is right, for the packages' own tests too.
// A line that cannot be judged is reported, and the lines after it are judged.
//
// Known gaps: EventPipe traces and contract descriptors are named as not
// handled; other tools of the project read them.
package replay

import (
	"fmt"
	"io"
	"slices"

	"github.com/seedwalk/seedwalk/testkit/judge"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// Skipped is a file, or a part of one, that was not replayed, and why.
type Skipped struct {
	File  string `json:"file"`
	Why   string `json:"why"`
	Error bool   `json:"error"` // it should have been readable
}

// Report is the outcome of a run.
type Report struct {
	Tallies []*judge.Tally `json:"results"`
	Skipped []Skipped      `json:"not_replayed,omitempty"`
}

// Bad reports whether any point is wrong, or refused in a strict kind.
func (r *Report) Bad() bool {
	return slices.ContainsFunc(r.Tallies, (*judge.Tally).Bad)
}

// Unreadable reports whether a file, or a part of one, could not be read or judged.
func (r *Report) Unreadable() bool {
	return slices.ContainsFunc(r.Skipped, func(a Skipped) bool { return a.Error })
}

// Runner replays files into a Report. It is not safe for concurrent use.
type Runner struct {
	Max    int       // mismatches kept in full per file and kind: at most Max wrong and Max refused ones
	Log    io.Writer // progress; nil = none
	Report Report

	archives map[string]*snap.Archive
}

// scored counts a file's points into the report.
func (r *Runner) scored(file string, judges func(*judge.Score) error) error {
	s := &judge.Score{File: file, Max: r.Max}
	if r.Log != nil {
		fmt.Fprintf(r.Log, "%s\n", file)
	}
	err := judges(s)
	r.Report.Tallies = append(r.Report.Tallies, s.Tallies...)
	for _, f := range s.Faults {
		r.failed(file, f)
	}
	return err
}

func (r *Runner) skip(file, why string) {
	r.Report.Skipped = append(r.Report.Skipped, Skipped{File: file, Why: why})
}

func (r *Runner) failed(file string, err error) {
	r.Report.Skipped = append(r.Report.Skipped, Skipped{File: file, Why: err.Error(), Error: true})
}
