// Command seedwalk takes complete mixed-mode stacks of .NET programs.
//
// Exit codes: 0 success; 1 a problem was found (doctor, checks, a damaged trace); 2 wrong usage; 3 the input
// could not be read or the output could not be written. `record` returns the command's own exit code. It
// returns 125 if seedwalk could not start the recording or write the result. It returns 126 if the command
// could not be run, and 127 if it was not found. It returns 128+n if signal n ended the command (not on
// Windows).
//
// Sources: the POSIX shell's exit codes and env(1), for record's; no-color.org; each package names its own.
//
// Glossary. `seedwalk help` and docs/ explain the words that the commands print.
//
// Strategy: a command is one file with its flags, its usage and a call into a package that does the work;
// code for one system only is in files with its name. Every help text is a golden file.
//
// Known gaps: no sampling on macOS and BSD. A command that the system does not support says so.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/seedwalk/seedwalk/cmd/engine"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/builder"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/doctor"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/stack"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/top"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/waits"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/sample/alarm"
)

// command is one subcommand. run gets the arguments after its name and returns an exit code.
type command struct {
	name string
	line string // what it does, in one line
	run  func(args []string) int
	help string // "" for help itself
}

// commands in the order in which help lists them. A new one is one entry here
// and a file of its own.
var commands []command

func init() {
	commands = append(commands,
		command{"record", "run a command and record its stacks", runRecord, recordHelpText()},
		command{"agent", "record .NET processes all the time, at a low rate", runAgent, agentHelp},
		command{"report", "show a recording, or make another format from it", runReport, reportHelpText()},
		command{"diff", "compare two recordings: what became slower", runDiff, diffHelp},
		command{"convert", "write a recording in other formats", runConvert, convertHelp},
		command{"waits", "report where a program waits: locks, events, tasks", waits.Run, waits.Help},
		command{"stack", "show the stacks of a running process or of a core", stack.Run, stack.Help},
		command{"top", "show what a running process does now", top.Run, top.Help},
		command{"hang", "explain why a process makes no progress: who waits for whom", stack.Hang, stack.HangHelp},
		command{"tasks", "list pending async operations: who awaits whom", stack.Tasks, stack.TasksHelp},
		command{"doctor", "check what would prevent a recording here", doctor.Run, doctor.Help},
		command{"info", "show and check the unwind data of an image", builder.Info, builder.InfoHelp},
		command{"capture", "save stacks of a running program in a file, to walk them again", builder.Capture, builder.CaptureHelp},
		command{"engine", "sample for the client library, which starts this command", engine.Run, engine.Help},
		command{"replay", "check the walkers against recorded inputs with known answers", builder.Replay, builder.ReplayHelp},
		command{"rules", "look up what a profiler may call, where, and what results mean", builder.Rules, builder.RulesHelp},
		command{"sim", "show the rules of stack walking in simulated processes", builder.Sim, builder.SimHelp},
		command{"completion", "print a script that completes commands and flags", runCompletion,
			completionHelp},
		command{"help", "explain seedwalk or one of its commands", runHelp, ""},
		command{"version", "print the version", runVersion, versionHelp},
	)
}

func main() {
	wholefile.ReadCutAsZeros()
	if len(os.Args) > 1 && slices.Contains([]string{"record", "agent", "top", "engine"}, os.Args[1]) {
		alarm.EnlargeSlack() // these sample
	}
	os.Exit(dispatch(os.Args[1:]))
}

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return cli.ExitUsage
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-v", "-version", "--version":
		name = "version"
	}
	if c := find(name); c != nil {
		return written(c.run(args[1:]))
	}
	advice := cli.DidYouMean(name, names())
	if advice == "" {
		advice = "; the commands are " + strings.Join(names(), ", ")
	}
	fmt.Fprintf(os.Stderr, "seedwalk: no command %q%s\n", name, advice)
	return cli.ExitUsage
}

// written returns a command's exit code. If a write to the standard output failed and the code reports no
// error, it reports that error and returns ExitUnreadable.
func written(code int) int {
	err := cli.Stdout.Err
	if err == nil || errors.Is(err, syscall.EPIPE) || code != cli.ExitOK && code != cli.ExitWrong {
		return code // the reader of a pipe may have enough
	}
	fmt.Fprintf(os.Stderr, "seedwalk: %v\n", err)
	return cli.ExitUnreadable
}

func find(name string) *command {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i]
		}
	}
	return nil
}

func names() []string {
	var out []string
	for _, c := range commands {
		out = append(out, c.name)
	}
	return out
}

func usage(w io.Writer) {
	fmt.Fprint(w, `seedwalk records complete stacks of .NET programs: managed and native frames in one
stack, leaf to root, with nothing left out silently.

  seedwalk record -- dotnet app.dll        run it, record it, write seedwalk.html

Commands:
`)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.line)
	}
	fmt.Fprint(w, "\n`seedwalk COMMAND --help` explains a command, with examples.\n")
}

func runHelp(args []string) int {
	if len(args) == 0 {
		usage(cli.Stdout)
		return cli.ExitOK
	}
	c := find(args[0])
	if c == nil || c.name == "help" {
		return dispatch(args[:1])
	}
	return c.run([]string{"--help"})
}
