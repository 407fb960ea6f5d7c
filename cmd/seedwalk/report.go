package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	place "github.com/seedwalk/seedwalk/cmd/record/output"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/export"
)

const reportHelp = `Usage: seedwalk report [flags] FILE.swrec
       seedwalk report [flags] FILE.nettrace ...

Shows a recording of seedwalk record, or makes any other format from it. The file may come from
another machine: it holds the names that were known there. Native functions without a name are
looked up again in the images and debug files of this machine, by build ID.

It also reads traces of .NET's own tools (.nettrace, also with gzip): samples, allocations,
exceptions, locks, waits, GC pauses, compiled methods, and other events. Traces have managed frames
only. Several traces of one process give one report: a short one can name the methods of a long
one. The FILE - is the standard input.

Without --output it prints the summary and the functions with most CPU time.

  --output FILE      write this file instead; repeat it or separate with commas; the ending of the
                     name chooses the format; - is the standard output
  --format NAME      format, where the ending does not say it
  --since D          only what happened later than D after the start, such as 2s or 1m30s
  --until D          only what happened earlier than D after the start
  --thread NAME|TID  only threads with this ID, or with this text in their name
  --focus REGEXP     only stacks with a function whose name matches
  --metric NAME      what to show first: cpu, wall, samples, or waits, wait, locks, lock,
                     allocations, alloc_space, exceptions where they were recorded; of traces
                     also gc_pauses, gc_pause, jit_methods, jit_time, queued, queue, starvations,
                     and events
  --symbols DIR|URL  look for symbol files (ELF, PDB) here too, by build ID; repeat it or
                     separate with commas. A folder has the files side by side, or the layout of
                     gdb, dotnet-symbol, or debuginfod. A URL is a debuginfod or symbol server,
                     and the word debuginfod means those in DEBUGINFOD_URLS.
  --top N            rows of the table of functions (default 20)
  --by KIND          a table by category, module, or thread instead of functions. Categories are
                     user code, class library, native libraries, GC, JIT, type loading, other
                     runtime, spinning, waiting, and unknown
  --tree             also print the hottest stacks as a tree
  --json             print the summary as one line of JSON instead of text (docs/json.md)

Formats:
%s
Examples:
  seedwalk report seedwalk.swrec
  seedwalk report --since 10s --until 12s --output spike.html seedwalk.swrec
  seedwalk report --thread worker --tree seedwalk.swrec
  seedwalk report --output - --format folded seedwalk.swrec | head
  seedwalk report --metric alloc_space --output alloc.html app.nettrace

Exit code: 0; 1 the recording is cut or damaged (what could be read is shown), or a trace lacks
samples, events, or the metric of --metric; 2 wrong usage; 3 the file cannot be read or is no
recording.
`

// viewFlags choose a part of a recording and how to show it.
type viewFlags struct {
	selection     export.Selection
	focus, metric string
	symbols       cli.SymbolList
}

func (v *viewFlags) register(set *flag.FlagSet) {
	set.Var((*cli.Seconds)(&v.selection.Since), "since", "")
	set.Var((*cli.Seconds)(&v.selection.Until), "until", "")
	set.StringVar(&v.selection.Thread, "thread", "", "")
	set.StringVar(&v.focus, "focus", "", "")
	set.StringVar(&v.metric, "metric", "", "")
	set.Var(&v.symbols, "symbols", "")
}

func (v *viewFlags) check() (err error) {
	s := &v.selection
	switch {
	case s.Since < 0 || s.Until < 0:
		return errors.New("--since and --until cannot be negative")
	case s.Until != 0 && s.Until <= s.Since:
		return fmt.Errorf("--until %v is not after --since %v", s.Until, s.Since)
	}
	if v.focus != "" {
		if s.Focus, err = regexp.Compile(v.focus); err != nil {
			return fmt.Errorf("--focus is not a regular expression: %w", err)
		}
	}
	return nil
}

// apply selects the part, and sets the metric that is shown first. If the part is empty, it prints what
// there is to select.
func (v *viewFlags) apply(p *export.Profile) (*export.Profile, error) {
	q, err := p.Select(v.selection)
	if err == nil && len(q.Stacks) == 0 && len(p.Stacks) > 0 {
		fmt.Fprintf(os.Stderr, "seedwalk: no samples in the selection (%s): the recording has %v and these threads: %s\n",
			v.selection, p.Duration.Round(time.Millisecond), threadNames(p))
	}
	if err != nil || v.metric == "" {
		return q, err
	}
	names := p.MetricNames()
	for _, name := range names {
		if name == v.metric {
			shown := *q
			shown.First = name
			return &shown, nil
		}
	}
	return nil, fmt.Errorf("the recording has no metric %q; it has %s", v.metric, strings.Join(names, ", "))
}

// load reads a recording, or traces of one process, and selects the part q of it. If that is not possible,
// it reports why, and q is nil.
func (v *viewFlags) load(command string, files []string) (p, q *export.Profile, code int) {
	if p, code = loadProfile(files, v.metric, v.symbols, os.Stderr); p == nil {
		return nil, nil, code
	}
	q, err := v.apply(p)
	if err != nil {
		return nil, nil, cli.Fail(command, cli.ExitUsage, fmt.Errorf("%s: %w", files[0], err))
	}
	return p, q, code
}

// threadNames lists the names of a profile's threads, each once.
func threadNames(p *export.Profile) string {
	var names []string
	for i := range p.Threads {
		if name := strconv.Quote(p.Threads[i].Name); name != `""` && !slices.Contains(names, name) &&
			len(names) < 20 {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none with a name")
}

// reportFlags are the flags of report.
type reportFlags struct {
	viewFlags
	outputs, formats cli.List
	top              int
	by               string
	tree, json       bool
}

func runReport(args []string) int {
	var f reportFlags
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	f.register(set)
	set.Var(&f.outputs, "output", "")
	set.Var(&f.outputs, "o", "")
	set.Var(&f.formats, "format", "")
	set.IntVar(&f.top, "top", 20, "")
	set.StringVar(&f.by, "by", "", "")
	set.BoolVar(&f.tree, "tree", false, "")
	set.BoolVar(&f.json, "json", false, "")
	files, code, done := cli.ParseMixed(set, reportHelpText(), args)
	if done {
		return code
	}
	outputs, err := f.checkReport(files)
	if err != nil {
		return cli.Usage("report", err)
	}
	p, q, code := f.load("report", files)
	if q == nil {
		return code
	}
	if len(outputs) == 0 {
		if len(q.Stacks) == 0 && len(p.Stacks) > 0 && !f.json {
			return code // apply has printed what there is to select
		}
		return max(code, f.show(q))
	}
	return max(code, writeOutputs(q, outputs))
}

func reportHelpText() string { return withFormats(reportHelp, export.Formats()) }

// checkReport checks what the user typed and pairs outputs with formats.
func (f *reportFlags) checkReport(args []string) ([]options.Output, error) {
	if len(args) == 0 {
		return nil, errors.New("name a recording, or traces of one process")
	}
	if f.top < 0 {
		return nil, errors.New("--top cannot be negative")
	}
	if f.by != "" && !slices.Contains(export.Groups, f.by) {
		return nil, fmt.Errorf("--by %q: choose %s", f.by, strings.Join(export.Groups, ", "))
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if len(f.outputs) == 0 && len(f.formats) > 0 {
		f.outputs = cli.List{"-"}
	}
	return pairReport(f.outputs, f.formats)
}

// pairReport is pairOutputs, without the format of recordings.
func pairReport(outputs, formats cli.List) ([]options.Output, error) {
	all, err := pairOutputs(outputs, formats)
	for _, o := range all {
		if o.Format.Write == nil {
			return nil, fmt.Errorf("%s: a recording is made by seedwalk record only; choose another format", o.Path)
		}
	}
	return all, err
}

// show prints the report.
func (f *reportFlags) show(p *export.Profile) int {
	if f.json {
		return cli.PrintJSON("report", export.NewRecording("seedwalk-recording", p), "")
	}
	opt := cli.TextOptions(os.Stdout)
	export.WriteSummary(cli.Stdout, p, opt)
	fmt.Fprintln(cli.Stdout)
	var err error
	if f.by != "" {
		err = export.WriteGroups(cli.Stdout, p, f.by, f.top, opt)
	} else {
		err = export.WriteTop(cli.Stdout, p, f.top, opt)
	}
	if f.tree && err == nil && len(p.Stacks) > 0 {
		fmt.Fprintln(cli.Stdout)
		err = export.WriteTree(cli.Stdout, p, opt)
	}
	if err != nil {
		return cli.Fail("report", cli.ExitUnreadable, err)
	}
	return cli.ExitOK
}

// writeOutputs writes a profile in each format.
func writeOutputs(p *export.Profile, outputs []options.Output) int {
	for _, o := range outputs {
		if err := writeOutput(p, o); err != nil {
			fmt.Fprintf(os.Stderr, "seedwalk: cannot write %s: %v\n", o.Path, err)
			return cli.ExitUnreadable
		}
		if o.Path != "-" {
			fmt.Fprintf(os.Stderr, "wrote %s\n", cli.ShortPath(o.Path))
		}
	}
	return cli.ExitOK
}

func writeOutput(p *export.Profile, o options.Output) error {
	if o.Path == "-" {
		return o.Format.Write(cli.Stdout, p)
	}
	return place.New().Write(o.Path, func(w io.Writer) error { return o.Format.Write(w, p) })
}
