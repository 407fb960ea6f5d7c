// Package doctor says what would stop a recording on this machine, or of one process.
//
// Sources: proc(5); the event log and firewall of Windows.
//
// Glossary. A finding is the answer of one check: OK, NOTE, or BAD, with a remedy if one is known.
//
// Strategy. Each system lists its checks in order. Where it can, a check tries what a recording
// would do.
//
// Known gaps: a check sees this user's rights only.
package doctor

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/unwind/module"
)

const Help = `Usage: seedwalk doctor [--json] [--profiler PATH] [-- COMMAND]
       seedwalk doctor [--json] --pid PID

Reports what would stop a recording here: the library for --mode snapshot, the .NET runtime,
environment variables, how threads are stopped and samples sent, and where the output goes. With
a command it also checks what "seedwalk record -- COMMAND" would run. Nothing is recorded.
With --pid it says which of record --pid, record --pid --outside, and stack work for a running
process, and what prevents the others.

Examples:
  seedwalk doctor
  seedwalk doctor -- ./MyService
  seedwalk doctor --pid 4711
  seedwalk doctor --json | jq -r '.[] | select(.status == "bad") | .remedy'

Exit code: 0 no line is BAD, 1 a line is BAD, 2 wrong usage.
`

// Status is a check's outcome.
type Status string

const (
	Good Status = "ok"
	Note Status = "note" // works, but the user should know
	Bad  Status = "bad"  // a recording would not work; with --pid, a command that the check names
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// patient is what the checks look at.
type patient struct {
	profiler string
	command  []string
	env      []string
	pid      int
	gone     bool          // the other checks do not apply
	modules  *module.Table // of a .NET program, once a check has read them
	found    bool          // the profiler was found by a search, not named by the user
}

func Run(args []string) int {
	set := flag.NewFlagSet("doctor", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "")
	profiler := set.String("profiler", "", "")
	var pid cli.PID
	set.Var(&pid, "pid", "")
	if code, done := cli.Parse(set, Help, args); done {
		return code
	}
	if pid > 0 && set.NArg() > 0 {
		return cli.Usage("doctor", "name a command or --pid, not both")
	}
	p := &patient{pid: int(pid), profiler: *profiler, command: set.Args(), env: os.Environ()}
	if p.profiler == "" {
		p.profiler, p.found = cli.FindProfiler(), os.Getenv("SEEDWALK_PROFILER") == ""
	}
	questions := checks
	if p.pid != 0 {
		questions = pidChecks
	}
	var found []Finding
	for _, check := range questions {
		if f := check(p); f.Check != "" {
			found = append(found, f)
		}
		if p.gone {
			break
		}
	}
	if *asJSON {
		cli.PrintJSON("doctor", found, "  ")
	} else {
		printFindings(cli.Stdout, found, p.pid != 0)
	}
	return verdict(found)
}

func verdict(found []Finding) int {
	for _, f := range found {
		if f.Status == Bad {
			return cli.ExitWrong
		}
	}
	return cli.ExitOK
}

func printFindings(w io.Writer, found []Finding, ofProcess bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		fmt.Fprintf(t, "%-4s\t%s\t%s\n", strings.ToUpper(string(f.Status)), f.Check, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", f.Remedy)
		}
	}
	t.Flush()
	fmt.Fprintln(w, "\n"+summary(verdict(found) == cli.ExitOK, ofProcess))
}

// summary returns the last line.
func summary(fine, ofProcess bool) string {
	switch {
	case fine && ofProcess:
		return "Everything works with this process."
	case fine:
		return "Nothing stops a recording here."
	case ofProcess:
		return "Not everything works with this process; see the lines marked BAD."
	}
	return "A recording would not work here; see the lines marked BAD."
}
