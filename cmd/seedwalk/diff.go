package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seedwalk/seedwalk/report/diff"
	"github.com/seedwalk/seedwalk/report/export"
)

const diffHelp = `Usage: seedwalk diff [flags] BEFORE.swrec AFTER.swrec

Compares two recordings and lists the functions whose self time differs by more than noise, those
that became slower first. A difference is noise if two runs of one version would show it: by the
number of samples, by how much all functions of the two recordings scatter, and by the number of
functions compared.

Times of the second recording are divided by the scale: how much longer most functions took. So a
slower machine is no difference, and one slower function does not make the others look faster.

  --since D, --until D, --thread NAME|TID, --focus REGEXP, --metric NAME, --symbols DIR
                     as in seedwalk report, for both recordings
  --top N            rows (default 20)
  --all              also list differences that may be noise
  --json             print one line of JSON instead of text

Examples:
  seedwalk record --output before.swrec -- dotnet old/app.dll
  seedwalk record --output after.swrec -- dotnet new/app.dll
  seedwalk diff before.swrec after.swrec

Exit code: 0 no difference beyond noise, 1 there are differences, 2 wrong usage, 3 a file cannot
be read or is no recording.
`

// diffFlags are the flags of diff.
type diffFlags struct {
	viewFlags
	top       int
	all, json bool
}

func runDiff(args []string) int {
	var f diffFlags
	set := flag.NewFlagSet("diff", flag.ContinueOnError)
	f.register(set)
	set.IntVar(&f.top, "top", 20, "")
	set.BoolVar(&f.all, "all", false, "")
	set.BoolVar(&f.json, "json", false, "")
	if code, done := parse(set, diffHelp, args); done {
		return code
	}
	err := f.check()
	if set.NArg() != 2 {
		err = errors.New("name two recordings")
	}
	if f.top < 0 {
		err = errors.New("--top cannot be negative")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk diff: %v; see seedwalk diff --help\n", err)
		return exitUsage
	}
	var sides [2]*export.Profile
	for i := range sides {
		p, _ := loadProfile([]string{set.Arg(i)}, f.metric, f.symbols, os.Stderr)
		if p == nil {
			return exitUnreadable
		}
		if sides[i], err = f.apply(p); err != nil {
			fmt.Fprintf(os.Stderr, "seedwalk diff: %s: %v\n", set.Arg(i), err)
			return exitUsage
		}
	}
	r, err := diff.Compare(sides[0], sides[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk diff: %v\n", err)
		return exitUnreadable
	}
	if f.json {
		printJSON(diffJSON(r))
	} else {
		f.show(os.Stdout, r, export.Unit(sides[0]))
	}
	if r.Differs() {
		return exitWrong
	}
	return exitOK
}

// show prints the differences as a table.
func (f *diffFlags) show(w io.Writer, r *diff.Result, unit string) {
	value := func(v float64) string {
		if unit == "nanoseconds" {
			return time.Duration(v).Round(10 * time.Microsecond).String()
		}
		return fmt.Sprintf("%.0f", v)
	}
	fmt.Fprintf(w, "before       %s, %d samples\nafter        %s, %d samples\n", value(float64(r.A.Self)), r.A.Count, value(float64(r.B.Self)), r.B.Count)
	fmt.Fprintf(w, "scale        most functions took %.2f times as long; the times of single functions scatter by %.0f %%\n\n", r.Scale, 100*r.Scatter)
	if !r.Differs() {
		fmt.Fprintln(w, "no difference beyond noise")
	}
	if !r.Differs() && !f.all {
		return
	}
	fmt.Fprintf(w, "%12s %12s %12s  %7s %7s  function (self time)\n", "difference", "before", "after", "samples", "")
	for _, row := range r.Rows[:min(f.top, len(r.Rows))] {
		if !row.Significant && !f.all {
			break
		}
		mark := ""
		if !row.Significant {
			mark = "  (may be noise)"
		}
		fmt.Fprintf(w, "%12s %12s %12s  %7d %7d  %s  %s%s\n", signed(row.Delta, value), value(float64(row.A.Self)), value(float64(row.B.Self)/r.Scale),
			row.A.Count, row.B.Count, row.Name, row.Module, mark)
	}
}

func signed(v float64, value func(float64) string) string {
	if v < 0 {
		return "-" + value(-v)
	}
	return "+" + value(v)
}

// jsonDiff is what --json prints.
type jsonDiff struct {
	Schema  string    `json:"schema"`
	Version int       `json:"version"`
	Differs bool      `json:"differs"`
	Before  jsonSide  `json:"before"`
	After   jsonSide  `json:"after"`
	Scale   float64   `json:"scale"`
	Scatter float64   `json:"scatter"`
	Rows    []jsonRow `json:"functions"`
}

type jsonSide struct {
	Self    int64 `json:"self"`
	Total   int64 `json:"total"`
	Samples int64 `json:"samples"`
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

func diffJSON(r *diff.Result) jsonDiff {
	side := func(s diff.Side) jsonSide { return jsonSide{s.Self, s.Total, s.Count} }
	d := jsonDiff{Schema: "seedwalk-diff", Version: export.JSONVersion, Differs: r.Differs(), Before: side(r.A), After: side(r.B), Scale: r.Scale, Scatter: r.Scatter, Rows: []jsonRow{}}
	for _, row := range r.Rows {
		d.Rows = append(d.Rows, jsonRow{row.Name, row.Module, side(row.A), side(row.B), row.Delta, row.Error, row.Significant})
	}
	return d
}
