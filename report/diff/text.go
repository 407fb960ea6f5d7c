package diff

import (
	"fmt"
	"io"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
)

// WriteText prints the significant differences as a table of at most top rows, or all differences.
// unit is that of the metric (see export.Unit).
func (r *Result) WriteText(w io.Writer, unit string, top int, all bool) {
	value := func(v float64) string {
		if unit == "nanoseconds" {
			return time.Duration(v).Round(10 * time.Microsecond).String()
		}
		return fmt.Sprintf("%.0f", v)
	}
	fmt.Fprintf(w, "before       %s, %d samples\nafter        %s, %d samples\n", value(float64(r.A.Self)),
		r.A.Count, value(float64(r.B.Self)), r.B.Count)
	for i, fact := range r.facts() {
		fmt.Fprintf(w, "%-12s %s\n", [...]string{"scale", "scatter", "warning"}[i], fact)
	}
	fmt.Fprintln(w)
	if !r.Differs() {
		fmt.Fprintln(w, "no difference beyond noise")
	}
	if !r.Differs() && !all {
		return
	}
	fmt.Fprintf(w, "%12s %12s %12s  %7s %7s  function (self time)\n", "difference",
		"before", "after", "samples", "")
	for _, row := range r.Rows[:min(top, len(r.Rows))] {
		if !row.Significant && !all {
			break
		}
		mark := ""
		if !row.Significant {
			mark = "  (may be noise)"
		}
		fmt.Fprintf(w, "%12s %12s %12s  %7d %7d  %s  %s%s\n", signed(row.Delta, value),
			value(float64(row.A.Self)), value(float64(row.B.Self)/r.Scale),
			row.A.Count, row.B.Count, row.Name, row.Module, mark)
	}
}

// facts are sentences about the scale and the scatter, and a warning if the profiles have little in common.
func (r *Result) facts() []string {
	scale := fmt.Sprintf("most functions took %.2f times as long, and times after are divided by that", r.Scale)
	if !r.Scaled {
		scale = fmt.Sprintf("times are compared as they are: fewer than %d functions have %d samples in both recordings", fewRatios, fewCount)
	}
	out := []string{scale, fmt.Sprintf("times of single functions scatter by %.0f %%", 100*r.Scatter)}
	if r.Common < fewCommon {
		out = append(out, fmt.Sprintf("only %.0f %% of the program's time is in functions of both recordings: they may be of different programs", 100*r.Common))
	}
	return out
}

func signed(v float64, value func(float64) string) string {
	if v < 0 {
		return "-" + value(-v)
	}
	return "+" + value(v)
}

// Document is a Result for seedwalk diff --json.
type Document struct {
	Schema  string    `json:"schema"`
	Version int       `json:"version"`
	Differs bool      `json:"differs"`
	Before  jsonSide  `json:"before"`
	After   jsonSide  `json:"after"`
	Scale   float64   `json:"scale"`
	Scatter float64   `json:"scatter"`
	Common  float64   `json:"common"`
	Rows    []jsonRow `json:"functions"`
}

type jsonSide struct {
	Self  int64 `json:"self"`
	Total int64 `json:"total"`
	Count int64 `json:"samples"`
}

type jsonRow struct {
	Name        string   `json:"name"`
	Module      string   `json:"module,omitempty"`
	Before      jsonSide `json:"before"`
	After       jsonSide `json:"after"`
	Delta       float64  `json:"delta"`
	Error       float64  `json:"error"`
	Significant bool     `json:"significant"`
}

// Document returns the JSON of the comparison.
func (r *Result) Document() Document {
	side := func(s Side) jsonSide { return jsonSide(s) }
	d := Document{Schema: "seedwalk-diff", Version: export.JSONVersion, Differs: r.Differs(),
		Before: side(r.A), After: side(r.B), Scale: r.Scale, Scatter: r.Scatter,
		Common: r.Common, Rows: []jsonRow{}}
	for _, row := range r.Rows {
		d.Rows = append(d.Rows, jsonRow{row.Name, row.Module, side(row.A), side(row.B),
			row.Delta, row.Error, row.Significant})
	}
	return d
}
