// Package replay runs the walkers over recorded inputs with true answers and
// counts what is right.
//
// Source: the schemas of the project's vectors: PE points and records (JSON
// lines), rows of call frame information beside their ELF files (JSON lines),
// stack snapshots (h4.snap.v1), and the archive of the latter two.
//
// Glossary: that of package judge: points that are right, wrong or refused.
//
// Strategy: what a file is its content says, never its name; names only lead to
// the files beside it (blobs, modules, the ELF files of rows). What is right is
// decided in the test kit's package judge, for the packages' own tests as well.
// A line that cannot be judged is reported, and the lines after it are judged.
//
// Known gaps: EventPipe traces and contract descriptors are named as not
// handled; other tools of the project read them.
package replay

import (
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/testkit/judge"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// Skipped is a file that was not replayed and why.
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
	for _, a := range r.Skipped {
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
