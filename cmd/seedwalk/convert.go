package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

const convertHelp = `Usage: seedwalk convert [flags] FILE.swrec OUTPUT ...

Writes a recording in other formats. The ending of each output's name chooses its format. It is
seedwalk report with --output, for scripts: it prints nothing.

  --format NAME      format, where the endings do not say it: one for all outputs
  --since D, --until D, --thread NAME|TID, --focus REGEXP, --metric NAME, --symbols DIR
                     as in seedwalk report

Examples:
  seedwalk convert seedwalk.swrec app.pb.gz app.speedscope.json
  seedwalk convert --thread main --format folded seedwalk.swrec -

Exit code: 0; 1 the recording is cut or damaged, and what could be read is written; 2 wrong
usage; 3 a file cannot be read or written.
`

func runConvert(args []string) int {
	var view viewFlags
	var formats list
	set := flag.NewFlagSet("convert", flag.ContinueOnError)
	view.register(set)
	set.Var(&formats, "format", "")
	if code, done := parse(set, convertHelp, args); done {
		return code
	}
	err := view.check()
	if set.NArg() < 2 {
		err = errors.New("name a recording and at least one output")
	}
	var outputs []output
	if err == nil {
		outputs, err = pairReport(set.Args()[1:], formats)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk convert: %v; see seedwalk convert --help\n", err)
		return exitUsage
	}
	p, code := loadRecording(set.Arg(0), view.symbols, os.Stderr)
	if p == nil {
		return code
	}
	q, err := view.apply(p)
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk convert: %s: %v\n", set.Arg(0), err)
		return exitUsage
	}
	for _, o := range outputs {
		if err := writeOutput(q, o); err != nil {
			fmt.Fprintf(os.Stderr, "seedwalk: cannot write %s: %v\n", o.path, err)
			return exitUnreadable
		}
	}
	return code
}
