package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/diff"
	"github.com/seedwalk/seedwalk/report/export"
)

const diffHelp = `Usage: seedwalk diff [flags] BEFORE.swrec AFTER.swrec
       seedwalk diff [flags] BEFORE.swrec AFTER.swrec -o FILE.html

Compares two recordings and lists the functions whose self time differs by more than noise, those
that became slower first. A difference is noise if two runs of one version would show it: by the
number of samples, by how much all functions of the two recordings scatter, and by the number of
functions compared.

Times of the second recording are divided by the scale: how much longer most functions took. So a
slower machine makes no difference, and one slower function does not make the others look faster.

  --since D, --until D, --thread NAME|TID, --focus REGEXP, --metric NAME, --symbols DIR|URL
                     as in seedwalk report, for both recordings
  --output FILE      write a page instead: the functions that became slower first, and a flame
                     graph in which what became slower is red, and what became faster blue;
                     the name ends in .html; - is the standard output
  --top N            rows (default 20)
  --all              also list differences that may be noise
  --json             print one line of JSON instead of text

Examples:
  seedwalk record --output before.swrec -- dotnet old/app.dll
  seedwalk record --output after.swrec -- dotnet new/app.dll
  seedwalk diff before.swrec after.swrec
  seedwalk diff before.swrec after.swrec -o diff.html

Exit code: 0 no difference beyond noise, 1 there are differences, 2 wrong usage, 3 a file is
damaged or has no end (what could be read is compared), cannot be read, is not a recording, or
has another metric than the other one (--metric chooses one for both).
`

// diffFlags are the flags of diff.
type diffFlags struct {
	viewFlags
	output    string
	top       int
	all, json bool
}

func runDiff(args []string) int {
	var f diffFlags
	set := flag.NewFlagSet("diff", flag.ContinueOnError)
	f.register(set)
	set.StringVar(&f.output, "output", "", "")
	set.StringVar(&f.output, "o", "", "")
	set.IntVar(&f.top, "top", 20, "")
	set.BoolVar(&f.all, "all", false, "")
	set.BoolVar(&f.json, "json", false, "")
	files, code, done := cli.ParseMixed(set, diffHelp, args)
	if done {
		return code
	}
	if err := f.checkDiff(files); err != nil {
		return cli.Usage("diff", err)
	}
	var sides [2]*export.Profile
	whole := true
	for i, path := range files {
		_, q, code := f.load("diff", []string{path})
		switch {
		case q == nil && code == cli.ExitUsage:
			return code
		case q == nil:
			return cli.ExitUnreadable
		}
		sides[i], whole = q, whole && code == cli.ExitOK
	}
	r, err := diff.Compare(sides[0], sides[1])
	if err != nil {
		return cli.Fail("diff", cli.ExitUnreadable, err)
	}
	switch {
	case f.output != "":
		page := options.Output{Path: f.output}
		page.Format.Write = func(w io.Writer, _ *export.Profile) error {
			return r.WritePage(w, sides[0], sides[1],
				[2]string{filepath.Base(files[0]), filepath.Base(files[1])})
		}
		if code := writeOutputs(nil, []options.Output{page}); code != cli.ExitOK {
			return code
		}
	case f.json:
		cli.PrintJSON("diff", r.Document(), "")
	default:
		r.WriteText(cli.Stdout, export.Unit(sides[0]), f.top, f.all)
	}
	switch {
	case !whole:
		return cli.ExitUnreadable
	case r.Differs():
		return cli.ExitWrong
	}
	return cli.ExitOK
}

// checkDiff checks what the user typed.
func (f *diffFlags) checkDiff(files []string) error {
	switch of, _ := export.ByExtension(f.output); {
	case len(files) != 2:
		return errors.New("name two recordings")
	case f.top < 0:
		return errors.New("--top cannot be negative")
	case f.output != "" && f.output != "-" && of.Name != "html":
		return fmt.Errorf("--output %s: a comparison is written as a page; its name must end in .html", f.output)
	}
	return f.check()
}
