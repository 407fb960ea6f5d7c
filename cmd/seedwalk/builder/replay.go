package builder

import (
	"flag"
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/testkit/replay"
)

const ReplayHelp = `Usage: seedwalk replay [--json] [--max N] FILE|FOLDER...

Runs the walkers over recorded inputs with known answers and prints how many results are right.
Inputs are PE points and records (.jsonl, .jsonl.gz), rows of call frame information (with their
ELF files in ../rowbin), recorded stacks (snap/*.json), archives of those (.tar.gz), and folders.
The content of a file decides what it is, not its name.

  --max N   show the first N mismatches of each file and kind in full (default 3): registers side
            by side, the code disassembled, the unwind codes or rows applied
  --json    one object: "results": [{file, kind, points, right, wrong, refused, strict, frames,
            right_frames, note, mismatches: [{id, verdict, where, why, values: [{name, want, got}],
            code, info}]}], "not_replayed": [{file, why, error}]

A result is refused if the walker gives none, or marks it as doubtful. In kinds that are strict a
refusal is a failure too, because an answer is known to be possible.

Examples:
  seedwalk replay testkit/testdata/pe
  seedwalk replay --max 10 pe/arm64-exec.jsonl.gz
  seedwalk replay --json snap/ | jq '.results[] | select(.wrong > 0)'

Exit code: 0 all results are right, 1 something is wrong, 2 wrong usage, 3 a file could not be read.
`

func Replay(args []string) int {
	set := flag.NewFlagSet("replay", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	most := set.Int("max", 3, "")
	if code, done := cli.Parse(set, ReplayHelp, args); done {
		return code
	}
	if set.NArg() == 0 || *most < 0 {
		return cli.Usage("replay", "name a file or folder")
	}
	r := replay.Runner{Max: *most}
	unreadable := false
	for _, name := range set.Args() {
		if err := r.Path(name); err != nil {
			fmt.Fprintf(os.Stderr, "seedwalk replay: %v\n", err)
			unreadable = true
		}
	}
	if *asJSON {
		if err := r.Report.JSON(cli.Stdout); err != nil {
			return cli.Fail("replay", cli.ExitUnreadable, err)
		}
	} else {
		r.Report.Text(cli.Stdout)
	}
	switch {
	case r.Report.Bad():
		return cli.ExitWrong
	case unreadable || r.Report.Unreadable():
		return cli.ExitUnreadable
	}
	return cli.ExitOK
}
