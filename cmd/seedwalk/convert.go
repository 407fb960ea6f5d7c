package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

const convertHelp = `Usage: seedwalk convert [flags] FILE.swrec OUTPUT ...
       seedwalk convert [flags] FILE.nettrace ... OUTPUT ...

Writes a recording, or traces of one process, in other formats. The ending of each output's name
chooses its format. It is seedwalk report with --output, for scripts: it prints nothing.

  --output FILE      the same as naming it behind the input
  --format NAME      format, where the endings do not say it: one for all outputs
  --since D, --until D, --thread NAME|TID, --focus REGEXP, --metric NAME, --symbols DIR|URL
                     as in seedwalk report

Examples:
  seedwalk convert seedwalk.swrec app.pb.gz app.speedscope.json
  seedwalk convert --thread main --format folded seedwalk.swrec -
  seedwalk convert app.nettrace -o app.html

Exit code: 0; 1 the recording is cut or damaged (what could be read is written), or a trace lacks
samples or the metric of --metric; 2 wrong usage; 3 a file cannot be read or written.
`

func runConvert(args []string) int {
	var view viewFlags
	var formats, named cli.List
	set := flag.NewFlagSet("convert", flag.ContinueOnError)
	view.register(set)
	set.Var(&formats, "format", "")
	set.Var(&named, "output", "")
	set.Var(&named, "o", "")
	files, code, done := cli.ParseMixed(set, convertHelp, args)
	if done {
		return code
	}
	inputs := 1
	for inputs < len(files) && isTraceName(files[inputs]) {
		inputs++
	}
	err := view.check()
	if len(files) == 0 || len(files)+len(named) <= inputs {
		err = errors.New("name a recording and at least one output")
	}
	var outputs []options.Output
	if err == nil {
		outputs, err = pairReport(append(named, files[inputs:]...), formats)
	}
	if err != nil {
		return cli.Usage("convert", err)
	}
	_, q, code := view.load("convert", files[:inputs])
	if q == nil {
		return code
	}
	for _, o := range outputs {
		if err := writeOutput(q, o); err != nil {
			fmt.Fprintf(os.Stderr, "seedwalk: cannot write %s: %v\n", o.Path, err)
			return cli.ExitUnreadable
		}
	}
	return code
}
