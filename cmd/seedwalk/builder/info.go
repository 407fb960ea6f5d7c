package builder

import (
	"flag"
	"io"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/inspect"
)

const InfoHelp = `Usage: seedwalk info FILE [--at RVA|ADDR|SYMBOL] [--check] [--json]

Shows the unwind data of an image in readable form. FILE is an ELF or PE image for x86-64 or
ARM64, of any operating system.

  (alone)   format, architecture, build id or GUID, the sections with unwind data, counts
  --at X    the function at X: its unwind codes or rows, chained and packed forms expanded, then
            each instruction with the place of the caller's frame and registers just before it
            runs. X is a symbol, a hexadecimal ELF address or RVA, or base + RVA
  --check   checks every entry and lists what is malformed, contradictory, overlapping, or
            unsupported, with counts, examples, the time, and the peak memory
  --json    one JSON object; addresses are numbers. Fields:
            (alone)  file format arch machine id base sections[name addr size] counts[name n]
                     problems[]
            --at     name lo hi asked arch from data[] lines[addr bytes text part cfa saved] notes[]
            --check  file format arch entries findings[class what count examples[]] seconds
                     peak_kib file_bytes

Examples:
  seedwalk info /lib/x86_64-linux-gnu/libc.so.6 --at abort
  seedwalk info coreclr.dll --at 0x1a40
  seedwalk info --check --json libcoreclr.so | jq '.findings[] | select(.class == "malformed")'

Exit code: 0 success, 1 --check found malformed entries, 2 wrong usage, 3 FILE could not be read or
has nothing at X.
`

func Info(args []string) int {
	set := flag.NewFlagSet("info", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	at := set.String("at", "", "")
	check := set.Bool("check", false, "")
	if code, done := cli.Parse(set, InfoHelp, fileLast(args)); done {
		return code
	}
	if wrong := wrongInfo(set.NArg(), *at, *check); wrong != "" {
		return cli.Usage("info", wrong)
	}
	answer, code, err := askInfo(set.Arg(0), *at, *check)
	if err != nil {
		return cli.Fail("info", cli.ExitUnreadable, err)
	}
	if !*asJSON {
		answer.Text(cli.Stdout)
		return code
	}
	return max(code, cli.PrintJSON("info", answer, "  "))
}

// wrongInfo returns what is wrong with the arguments, "" if they are right.
func wrongInfo(files int, at string, check bool) string {
	switch {
	case files == 0:
		return "no file; name an ELF or PE image"
	case files > 1:
		return "more than one file; name one"
	case check && at != "":
		return "use --at or --check, not both"
	}
	return ""
}

// fileLast moves a first argument that is no flag behind the flags: users name
// the file first.
func fileLast(args []string) []string {
	if len(args) > 1 && args[0] != "" && args[0][0] != '-' {
		return append(append([]string{}, args[1:]...), args[0])
	}
	return args
}

func askInfo(file, at string, check bool) (texter, int, error) {
	if check {
		c, err := inspect.CheckFile(file)
		if err != nil {
			return nil, 0, err
		}
		if c.Count(inspect.Malformed) > 0 {
			return c, cli.ExitWrong, nil
		}
		return c, cli.ExitOK, nil
	}
	im, err := inspect.Open(file)
	if err != nil {
		return nil, 0, err
	}
	if at == "" {
		return im.Summary(), cli.ExitOK, nil
	}
	f, err := im.At(at)
	if err != nil {
		return nil, 0, err
	}
	return f, cli.ExitOK, nil
}

// texter is a result that can be printed as text.
type texter interface{ Text(w io.Writer) }
