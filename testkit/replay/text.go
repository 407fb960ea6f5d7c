package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/seedwalk/seedwalk/testkit/judge"
)

// JSON writes the report: an object with "results" (one per file and kind) and
// "not_replayed".
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Text writes the table, the first mismatches in full, and what was left out.
func (r *Report) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "points\tright\twrong\trefused\t share\t\n")
	var sum judge.Tally
	for _, x := range r.Tallies {
		row(t, x, label(x))
		sum.Points, sum.Right, sum.Wrong, sum.Refused = sum.Points+x.Points, sum.Right+x.Right,
			sum.Wrong+x.Wrong, sum.Refused+x.Refused
	}
	row(t, &sum, "all")
	t.Flush()
	r.notes(w)
	for _, x := range r.Tallies {
		for i := range x.Mismatches {
			mismatch(w, x, &x.Mismatches[i])
		}
	}
	for _, a := range r.Skipped {
		fmt.Fprintf(w, "not replayed: %s: %s\n", a.File, a.Why)
	}
}

func label(x *judge.Tally) string {
	mark := ""
	if x.Bad() {
		mark = "  <-- FAILS"
	}
	frames := ""
	if x.Frames > 0 {
		frames = fmt.Sprintf(" (frames %d of %d)", x.RightFrames, x.Frames)
	}
	return shortName(x.File) + " " + x.Kind + frames + mark
}

// shortName keeps the last folder of a file's name.
func shortName(file string) string {
	if i := strings.LastIndexByte(file, ':'); i > 1 {
		return file[i+1:]
	}
	return filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
}

func row(w io.Writer, x *judge.Tally, name string) {
	share := "-"
	if x.Points > 0 {
		share = fmt.Sprintf("%.2f%%", 100*float64(x.Right)/float64(x.Points))
		if share == "100.00%" {
			share = "100%"
			if x.Right != x.Points {
				share = "99.99%"
			}
		}
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t %s\t  %s\n", x.Points, x.Right, x.Wrong, x.Refused, share, name)
}

// notes prints what is to know about kinds, once each.
func (r *Report) notes(w io.Writer) {
	seen := map[string]bool{}
	for _, x := range r.Tallies {
		if x.Note != "" && !seen[x.Kind+x.Note] {
			seen[x.Kind+x.Note] = true
			fmt.Fprintf(w, "  %s: %s\n", x.Kind, x.Note)
		}
	}
}

func mismatch(w io.Writer, x *judge.Tally, m *judge.Mismatch) {
	mark := ""
	if !x.Failure(m) {
		mark = " (no failure: refused)"
	}
	fmt.Fprintf(w, "\n%s %s: %s, %s%s\n", shortName(x.File), x.Kind, m.ID, m.Where, mark)
	m.Text(w)
}
